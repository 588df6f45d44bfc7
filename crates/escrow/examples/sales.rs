//! Two sales through the escrow, step by step: the first is delivered and disputed, the seller refunds the second.
//!
//! `cargo run -p surety-escrow --example sales -- DEPLOYMENT.json BUYER_SEED SELLER_SEED`: the record of a deployment, and
//! the seeds of two keys in hex, each with 20 test ADA at its enterprise address. The chain is read through Blockfrost
//! (`BLOCKFROST_URL`, `BLOCKFROST_PROJECT_ID`). A test runs the same steps on a local ledger.

#![allow(clippy::disallowed_methods, reason = "runs on a developer's machine")]

use std::{collections::BTreeSet, env, error::Error, fs, thread::sleep, time::Duration};

use cardano::{
    ContentHash, Lovelace,
    address::PaymentAddress,
    blockfrost::{Client, Ureq},
    chain::{Chain, Submission, Utxo, Value},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::SlotConfig,
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use surety_escrow::{
    Datum, Deadlines, Deployment, State,
    plan::{ChainTime, Escrow, Planner, Step},
    spend::{Ending, Spent},
};

type Fallible<T> = Result<T, Box<dyn Error>>;

const PRICE: Lovelace = Lovelace::from_ada(5);

/// A buyer and a seller on one chain.
pub struct Sales<'a, C> {
    pub chain: &'a C,
    pub deployment: &'a Deployment,
    pub buyer: &'a SigningKey,
    pub seller: &'a SigningKey,
    /// Called while a transaction is in no block yet.
    pub pause: &'a dyn Fn(),
}

impl<C: Chain + Evaluate> Sales<'_, C> {
    /// Runs both sales. Returns the states through which they went.
    pub async fn run(&self) -> Fallible<Vec<State>> {
        let mut states = vec![];
        let mut escrow = self.lock(1).await?;
        let result = ContentHash::of(b"the delivered text");
        for (step, key) in [(Step::SubmitResult(result), self.seller), (Step::SetRefundRequested, self.buyer)] {
            states.push(escrow.datum.state);
            escrow = self.step(&escrow, &step, key).await?.ok_or("the escrow ended")?;
        }
        states.push(escrow.datum.state);

        let escrow = self.lock(2).await?;
        let refunded = self.step(&escrow, &Step::AuthorizeRefund, self.seller).await?.ok_or("the escrow ended")?;
        states.extend([escrow.datum.state, refunded.datum.state]);
        let end = self.step(&refunded, &Step::WithdrawRefund, self.buyer).await?;
        if end.is_some() { Err("the escrow goes on".into()) } else { Ok(states) }
    }

    /// The buyer locks the price under the seller's terms.
    async fn lock(&self, number: u8) -> Fallible<Escrow> {
        let tip = self.chain.tip().await?;
        let datum = Datum {
            buyer: self.buyer.enterprise_address().into(),
            buyer_return_address: None,
            seller: self.seller.enterprise_address().into(),
            seller_return_address: None,
            // `x402-cardano` makes these five from a quote that the seller signs.
            reference_key: vec![0x42; 42],
            reference_signature: vec![number; 166],
            seller_nonce: vec![number; 32],
            buyer_nonce: vec![],
            input_hash: vec![0x44; 32],
            agent_identifier: vec![],
            collateral_return: Lovelace::ZERO,
            result_hash: vec![],
            deadlines: Deadlines::issue(tip.time_ms).ok_or("the time is out of range")?,
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: State::FundsLocked,
        };
        let lock = NewOutput {
            to: PaymentAddress::script(self.deployment.script_hash),
            value: Value { lovelace: PRICE, ..Value::default() },
            inline_datum: Some(datum.to_cbor()),
            script: None,
        };
        let validity = Validity { from: None, until: tip.slot.saturating_add(200) };
        let plan = TxPlan { outputs: vec![lock], validity, ..TxPlan::default() };
        let (address, reserved) = (self.buyer.enterprise_address(), BTreeSet::new());
        let utxos = self.chain.utxos_at(&address.to_string(), |_| false).await?;
        let wallet = Wallet { address, utxos: &utxos, reserved: &reserved };
        let built = build(&plan, &wallet, &self.chain.protocol_parameters().await?)?.sign(&[self.buyer])?;
        let made = self.include(&built).await?;
        Ok(Escrow::read(made.into_iter().next().ok_or("no output")?, self.deployment)?)
    }

    /// Performs a step. Returns the escrow after it, or `None` if the step ended it.
    async fn step(&self, escrow: &Escrow, step: &Step, key: &SigningKey) -> Fallible<Option<Escrow>> {
        let (tip, parameters) = (self.chain.tip().await?, self.chain.protocol_parameters().await?);
        let planner = Planner { deployment: self.deployment, parameters: &parameters, slots: &SlotConfig::PREPROD };
        let (address, reserved) = (key.enterprise_address(), BTreeSet::new());
        let utxos = self.chain.utxos_at(&address.to_string(), |_| false).await?;
        let wallet = Wallet { address, utxos: &utxos, reserved: &reserved };
        let time = ChainTime { tip_slot: tip.slot, now: tip.time_ms };
        let built = planner.draft(self.chain, escrow, step, time, &wallet).await?.sign(&[key])?;
        match escrow.spent_into(&self.include(&built).await?) {
            Spent::Continues(next) => Ok(Some(*next)),
            Spent::Ended(Ending::Refunded | Ending::Withdrawn) => Ok(None),
            Spent::Ended(other) => Err(format!("{other:?}").into()),
        }
    }

    /// Submits a transaction, waits for its block, and returns its outputs.
    async fn include(&self, built: &BuiltTx) -> Fallible<Vec<Utxo>> {
        if let Submission::Refused(why) = self.chain.submit(&built.cbor).await? {
            return Err(why.into());
        }
        while self.chain.inclusion_of(&built.facts.tx_id).await?.is_none() {
            (self.pause)();
        }
        let outputs = self.chain.outputs_of(&built.facts.tx_id).await?.ok_or("no outputs")?;
        Ok(outputs.into_iter().filter(|output| !output.not_on_ledger).map(|output| output.utxo).collect())
    }
}

fn key(argument: Option<String>) -> Fallible<SigningKey> {
    let seed = hex::decode(argument.ok_or("usage: sales DEPLOYMENT.json BUYER_SEED SELLER_SEED")?)?;
    Ok(SigningKey::from_seed(&seed.try_into().map_err(|_| "a seed has 32 bytes")?)?)
}

#[allow(dead_code, reason = "the test calls `Sales::run` alone")]
fn main() -> Fallible<()> {
    let mut arguments = env::args().skip(1);
    let deployment: Deployment = serde_json::from_slice(&fs::read(arguments.next().unwrap_or_default())?)?;
    let (buyer, seller) = (key(arguments.next())?, key(arguments.next())?);
    let base = env::var("BLOCKFROST_URL").unwrap_or_else(|_| "https://cardano-preprod.blockfrost.io/api/v0".into());
    let chain = Client::new(Ureq::default(), &base, &env::var("BLOCKFROST_PROJECT_ID").unwrap_or_default());
    let pause = || sleep(Duration::from_secs(2));
    let sales = Sales { chain: &chain, deployment: &deployment, buyer: &buyer, seller: &seller, pause: &pause };
    println!("{:?}", futures_lite::future::block_on(sales.run())?);
    Ok(())
}
