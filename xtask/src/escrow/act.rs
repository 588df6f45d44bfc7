//! `cargo xtask escrow act`: performs an action on an escrow for its buyer or seller.
//!
//! Use it as an operator whose watcher cannot act, or as a developer who tests how the watcher reacts to other parties'
//! actions.

use std::{collections::BTreeSet, error::Error, path::PathBuf, process::ExitCode};

use cardano::{
    ContentHash, TxRef,
    keys::SigningKey,
    slots::SlotConfig,
    tx::build::{Validity, Wallet},
};
use clap::{Args, ValueEnum};
use escrow::plan::{ChainTime, Escrow, Planner, Step};

use super::deploy;
use provider::Provider;

use crate::secret;

/// Maximum time in seconds to wait until a block includes the transaction.
const WAIT_SECONDS: u64 = 180;

/// The action to perform.
#[derive(Clone, Copy, ValueEnum)]
enum PartyAction {
    /// The seller posts a result (`--result`).
    PostResult,
    /// The seller allows the buyer to withdraw the money.
    AllowRefund,
    /// The buyer requests a refund, or disputes.
    RequestRefund,
    /// The buyer releases the money to the seller.
    AllowWithdrawal,
    /// The buyer withdraws the money.
    Refund,
}

/// Arguments of `act`.
#[derive(Args)]
pub struct ActArguments {
    /// The action to perform.
    action: PartyAction,
    /// The escrow's transaction output: txHash#index.
    escrow: TxRef,
    #[command(flatten)]
    provider: Provider,
    /// Path of the escrow contract's deployment record.
    #[arg(long, default_value = "escrow.json")]
    record: PathBuf,
    /// The result to post: 64 hexadecimal characters.
    #[arg(long)]
    result: Option<ContentHash>,
    /// Environment variable with the secret of the party that acts.
    #[arg(long, default_value = "SELLER_SECRET")]
    party: String,
    /// Environment variable with the secret of the wallet that pays the fee, if it is not the party's.
    #[arg(long)]
    payer: Option<String>,
    /// Exit as soon as the provider has accepted the transaction.
    #[arg(long)]
    no_wait: bool,
    /// Validity of the transaction in slots after the newest block. By default, the transaction is valid for as long as
    /// the action is allowed.
    #[arg(long)]
    slots: Option<u64>,
}

pub(super) fn run(arguments: &ActArguments) -> Result<ExitCode, Box<dyn Error>> {
    let ActArguments { provider, escrow: reference, .. } = arguments;
    let deployment = deploy::read(&arguments.record)?;
    let party = secret::key(&arguments.party)?;
    let other = arguments.payer.as_deref().map(secret::key).transpose()?;
    if other.is_some() && matches!(arguments.action, PartyAction::Refund) {
        return Err("a refund comes back as change: its party must pay the fee".into());
    }
    let home = other.as_ref().unwrap_or(&party).enterprise_address();
    let outputs = provider.outputs_of(&reference.tx)?.ok_or("no such transaction in a block")?;
    let output = outputs.into_iter().find(|output| output.utxo.reference == *reference && output.spent_by.is_none());
    let escrow = Escrow::read(output.ok_or("no such unspent output")?.utxo, &deployment)?;
    let tip = provider.tip()?;
    let now = u64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis())?;
    let time = ChainTime { tip_slot: tip.slot, now: now.max(tip.time_ms) };
    let parameters = provider.protocol_parameters()?;
    let utxos = provider.utxos_at(&home.to_string())?;
    let reserved = BTreeSet::new();
    let wallet = Wallet { address: home, utxos: &utxos, reserved: &reserved };
    let planner = Planner { deployment: &deployment, parameters: &parameters, slots: &SlotConfig::PREPROD };
    let step = arguments.step()?;
    let mut plan = planner.plan(&escrow, &step, time)?;
    if let Some(slots) = arguments.slots {
        let until = tip.slot.saturating_add(slots).saturating_add(1);
        let from = plan.validity.from.map(|from| from.min(tip.slot));
        plan = planner.plan_within(&escrow, &step, Validity { from, until })?;
    }
    let draft = futures_lite::future::block_on(planner.draft_of(provider, plan, &wallet))?;
    let signers: Vec<&SigningKey> = std::iter::once(&party).chain(&other).collect();
    let built = draft.sign(&signers)?;
    provider.submit(&built.cbor)?;
    if !arguments.no_wait {
        provider.wait_for(&built.facts.tx_id, WAIT_SECONDS)?;
    }
    println!("{}", built.facts.tx_id);
    Ok(ExitCode::SUCCESS)
}

impl ActArguments {
    fn step(&self) -> Result<Step, &'static str> {
        Ok(match self.action {
            PartyAction::PostResult => Step::SubmitResult(self.result.ok_or("--result is needed")?),
            PartyAction::AllowRefund => Step::AuthorizeRefund,
            PartyAction::RequestRefund => Step::SetRefundRequested,
            PartyAction::AllowWithdrawal => Step::AuthorizeWithdrawal,
            PartyAction::Refund => Step::WithdrawRefund,
        })
    }
}
