//! Locks escrows on a local ledger and takes them to a given state, one JSON object per line in and one per line out.
//!
//! Input: `{"listingId", "contentHash", "posted", "price", "collateral", "until"}`, with a state in `until`. Output:
//! `{"ref", "lock", "locked", "buyer", "seller", "opens"}`. The keys are read from the environment variables
//! BUYER_SECRET and SELLER_SECRET; both addresses must hold enough. `tests/e2e/arbiter` then has the arbiter settle the
//! disputes.

use std::{
    collections::BTreeSet,
    error::Error,
    io::{BufRead, Write, stdin, stdout},
    path::PathBuf,
};

use cardano::{
    ContentHash, Lovelace, TxHash,
    address::PaymentAddress,
    chain::{Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use clap::Parser;
use escrow::{
    Datum, Deadlines, Deployment, State,
    plan::{ChainTime, Escrow, Planner, Step},
    result::result_hash,
};
use provider::Provider;
use serde::Deserialize;
use serde_json::json;
use x402_cardano::escrow::listing_input_hash;
use xtask::secret;

/// Number of slots between now and the end of the lock's validity interval.
const PATIENCE: u64 = 600;
/// Maximum time to wait for a transaction's inclusion, in seconds.
const WAIT: u64 = 60;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    provider: Provider,
    /// Path of the deployment record.
    record: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DisputeScenario {
    listing_id: String,
    content_hash: ContentHash,
    posted: String,
    price: Lovelace,
    collateral: Lovelace,
    until: State,
    /// `true` to create the escrow output directly in the state `until`, without the steps that lead to it: a forgery.
    #[serde(default)]
    forged: bool,
}

struct Stage {
    provider: Provider,
    deployment: Deployment,
    parameters: ProtocolParameters,
    buyer: SigningKey,
    seller: SigningKey,
    locks: u64,
}

type Failable<T> = Result<T, Box<dyn Error>>;

fn main() -> Failable<()> {
    let Arguments { provider, record } = Arguments::parse();
    let mut stage = Stage {
        deployment: serde_json::from_str(&std::fs::read_to_string(record)?)?,
        parameters: provider.protocol_parameters()?,
        buyer: secret::key("BUYER_SECRET")?,
        seller: secret::key("SELLER_SECRET")?,
        locks: provider.tip()?.height,
        provider,
    };
    for line in stdin().lock().lines() {
        let answer = stage.play(&serde_json::from_str(&line?)?)?;
        writeln!(stdout(), "{answer}")?;
    }
    Ok(())
}

impl Stage {
    fn play(&mut self, scenario: &DisputeScenario) -> Failable<serde_json::Value> {
        let mut escrow = self.lock(scenario)?;
        let lock = escrow.utxo.reference.tx;
        let result = Step::SubmitResult(result_hash(&lock, &scenario.posted));
        let steps: &[Step] = match scenario.until {
            _ if scenario.forged => &[],
            State::FundsLocked => &[],
            State::ResultSubmitted => &[result],
            State::RefundRequested => &[Step::SetRefundRequested],
            State::Disputed => &[result, Step::SetRefundRequested],
            // The dispute reset the seller's cooldown, so the seller can act at once. The buyer would have to wait for
            // a cooldown.
            State::RefundAuthorized => &[result, Step::SetRefundRequested, Step::AuthorizeRefund],
            State::WithdrawAuthorized => return Err("not played here".into()),
        };
        for step in steps {
            escrow = self.step(&escrow, step)?;
        }
        Ok(json!({
            "ref": escrow.utxo.reference,
            "lock": lock,
            "locked": escrow.utxo.value.lovelace,
            "buyer": self.buyer.enterprise_address(),
            "seller": self.seller.enterprise_address(),
            "opens": escrow.datum.deadlines.external_dispute_unlock,
        }))
    }

    fn lock(&mut self, scenario: &DisputeScenario) -> Failable<Escrow> {
        self.locks = self.locks.checked_add(1).ok_or("too many locks")?;
        let tip = self.provider.tip()?;
        let datum = Datum {
            buyer: self.buyer.enterprise_address().into(),
            buyer_return_address: None,
            seller: self.seller.enterprise_address().into(),
            seller_return_address: None,
            reference_key: vec![0x42; 42],
            reference_signature: [self.locks.to_be_bytes().to_vec(), vec![0x55; 158]].concat(),
            seller_nonce: self.locks.to_be_bytes().to_vec(),
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: scenario.collateral,
            input_hash: listing_input_hash(&scenario.listing_id, &scenario.content_hash).as_bytes().to_vec(),
            result_hash: if scenario.forged { vec![7; 32] } else { vec![] },
            deadlines: Deadlines::issue(tip.time_ms).ok_or("the end of time")?,
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: if scenario.forged { scenario.until } else { State::FundsLocked },
        };
        let locked = scenario.price.checked_add(scenario.collateral).ok_or("too much")?;
        let output = NewOutput {
            to: PaymentAddress::script(self.deployment.script_hash),
            value: Value { lovelace: locked, ..Value::default() },
            inline_datum: Some(datum.to_cbor()),
            script: None,
        };
        let validity = Validity { from: None, until: tip.slot.saturating_add(PATIENCE) };
        let plan = TxPlan { outputs: vec![output], validity, ..TxPlan::default() };
        let tx = self.send(&plan, &self.buyer)?;
        self.first_output(&tx)
    }

    /// Performs one step on an escrow. The transaction declares the maximum execution units instead of evaluated ones,
    /// which only raises its fee.
    fn step(&self, escrow: &Escrow, step: &Step) -> Failable<Escrow> {
        let slots = SlotConfig::PREPROD;
        let planner = Planner { deployment: &self.deployment, parameters: &self.parameters, slots: &slots };
        let tip = self.provider.tip()?;
        let plan = planner.plan(escrow, step, ChainTime { tip_slot: tip.slot, now: tip.time_ms })?;
        let by_buyer = matches!(step, Step::SetRefundRequested);
        let tx = self.send(&plan, if by_buyer { &self.buyer } else { &self.seller })?;
        self.first_output(&tx)
    }

    fn send(&self, plan: &TxPlan, key: &SigningKey) -> Failable<TxHash> {
        let address = key.enterprise_address();
        let utxos: Vec<Utxo> = self.provider.utxos_at(&address.to_string())?;
        let wallet = Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() };
        let built = build(plan, &wallet, &self.parameters)?.sign(&[key])?;
        self.provider.submit(&built.cbor)?;
        self.provider.wait_for(&built.facts.tx_id, WAIT)?;
        Ok(built.facts.tx_id)
    }

    fn first_output(&self, tx: &TxHash) -> Failable<Escrow> {
        let outputs = self.provider.outputs_of(tx)?.ok_or("not in a block")?;
        let first = outputs.into_iter().next().ok_or("no output")?;
        Ok(Escrow::read(first.utxo, &self.deployment)?)
    }
}
