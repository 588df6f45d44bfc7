//! An in-memory ledger with real transactions, a provider that fails as real ones do, and disputes on that ledger.
//! Scripts do not run; the planner decides which actions on an escrow are possible.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

mod ledger;

use std::{collections::BTreeSet, future::Future};

use arbitration::{Arbiter, DisputedListing, ResolveError, ResolveRequest, ResolveResult, SCHEMA};
use cardano::{
    ContentHash, Lovelace, ScriptHash, TxHash, TxRef,
    address::PaymentAddress,
    chain::{Utxo, Value},
    fees::ExUnits,
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{NewOutput, ScriptInput, TxPlan, Validity, Wallet, build},
};
use escrow::{
    Datum, Deadlines, Deployment, State,
    plan::{ChainTime, Escrow, Planner, Step},
    result::result_hash,
};
use sql::{Database, sqlite::Sqlite};
use x402_cardano::escrow::listing_input_hash;

pub use ledger::{Ledger, Submit};

const SLOTS: SlotConfig = SlotConfig::PREPROD;
pub const ADA: u64 = 1_000_000;
const CONTENT: &str = "a prompt";

pub fn block<F: Future>(future: F) -> F::Output {
    futures_lite::future::block_on(future)
}

pub struct World {
    pub database: Sqlite,
    pub ledger: Ledger,
    pub arbiter: SigningKey,
    deployment: Deployment,
    buyer: SigningKey,
    seller: SigningKey,
}

impl World {
    /// Creates a world in which the arbiter's wallet has one output for each of these amounts of lovelace.
    pub fn new(coins: &[u64]) -> Self {
        let [buyer, seller, arbiter] = [1, 2, 3].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let deployment = serde_json::json!({
            "scriptHash": "ee".repeat(28),
            "parameters": {"requiredAdmins": 1, "adminVkeys": [arbiter.key_hash()], "cooldownPeriod": 60_000},
            "referenceScript": format!("{}#1", "07".repeat(32)),
            "referenceScriptBytes": 4_000,
        });
        let ledger = Ledger::default();
        for (key, coins) in [(&buyer, [5_000 * ADA].as_slice()), (&seller, &[5_000 * ADA]), (&arbiter, coins)] {
            ledger.give(key.enterprise_address(), coins);
        }
        let database = Sqlite::of(SCHEMA).unwrap();
        Self { database, ledger, arbiter, deployment: serde_json::from_value(deployment).unwrap(), buyer, seller }
    }

    /// Creates a dispute about content that was delivered as promised, so that the seller must win.
    pub fn dispute(&self, number: u8) -> ResolveRequest {
        self.dispute_with(number, 0)
    }

    /// Creates a dispute like [`Self::dispute`]. Its transaction also spends `others` outputs at other scripts, each
    /// created by a transaction of its own.
    pub fn dispute_with(&self, number: u8, others: u16) -> ResolveRequest {
        let content_hash = ContentHash::of(CONTENT.as_bytes());
        let listing_id = format!("lst_{number}");
        let lock = self.lock(number, listing_input_hash(&listing_id, &content_hash));
        let result = Step::SubmitResult(result_hash(&lock.utxo.reference.tx, CONTENT));
        let posted = self.step(&lock, &result, vec![]);
        let others = (0..others).map(|other| self.elsewhere(other)).collect();
        let disputed = self.step(&posted, &Step::SetRefundRequested, others);
        let listing = DisputedListing { id: listing_id, content_hash };
        ResolveRequest { escrow: disputed.utxo.reference, listing, output: CONTENT.to_owned() }
    }

    /// Lets the seller of this dispute agree to a refund.
    pub fn concede(&self, request: &ResolveRequest) {
        self.ledger.advance(10 * 60_000);
        let disputed = Escrow::read(self.ledger.output(request.escrow), &self.deployment).unwrap();
        self.step(&disputed, &Step::AuthorizeRefund, vec![]);
    }

    fn lock(&self, number: u8, input_hash: ContentHash) -> Escrow {
        let datum = Datum {
            buyer: self.buyer.enterprise_address().into(),
            buyer_return_address: None,
            seller: self.seller.enterprise_address().into(),
            seller_return_address: None,
            reference_key: vec![0x42; 42],
            reference_signature: vec![number; 166],
            seller_nonce: vec![number; 16],
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: Lovelace::from_ada(2),
            input_hash: input_hash.as_bytes().to_vec(),
            result_hash: vec![],
            deadlines: Deadlines::issue(self.ledger.now()).unwrap(),
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: State::FundsLocked,
        };
        let output = at_script(self.deployment.script_hash, Lovelace::from_ada(7), datum.to_cbor());
        let lock = self.send(TxPlan { outputs: vec![output], ..self.until_soon() }, &self.buyer);
        self.first_output(&lock)
    }

    /// Creates an output at another script's address, in a transaction of its own.
    fn elsewhere(&self, number: u16) -> ScriptInput {
        // CBOR of an integer, since any data will do.
        let datum = [vec![0x19], number.to_be_bytes().to_vec()].concat();
        let output = at_script(ScriptHash::new([0xaa; 28]), Lovelace::from_ada(2), datum.clone());
        let tx = self.send(TxPlan { outputs: vec![output], ..self.until_soon() }, &self.buyer);
        ScriptInput { utxo: self.ledger.output(TxRef { tx, index: 0 }), redeemer: datum, ex_units: LITTLE }
    }

    fn until_soon(&self) -> TxPlan {
        let until = self.ledger.tip_slot() + 600;
        TxPlan { validity: Validity { from: None, until }, ..TxPlan::default() }
    }

    fn step(&self, escrow: &Escrow, step: &Step, others: Vec<ScriptInput>) -> Escrow {
        let planner =
            Planner { deployment: &self.deployment, parameters: &ProtocolParameters::preprod(), slots: &SLOTS };
        let time = ChainTime { tip_slot: self.ledger.tip_slot(), now: self.ledger.now() };
        let mut plan = planner.plan(escrow, step, time).unwrap();
        plan.script_inputs.iter_mut().for_each(|input| input.ex_units = LITTLE);
        plan.script_inputs.extend(others);
        let by_buyer = matches!(step, Step::SetRefundRequested);
        let tx = self.send(plan, if by_buyer { &self.buyer } else { &self.seller });
        self.first_output(&tx)
    }

    fn send(&self, plan: TxPlan, key: &SigningKey) -> TxHash {
        let address = key.enterprise_address();
        let utxos = self.ledger.unspent_at(&address.to_string());
        let wallet = Wallet { address, utxos: &utxos, reserved: &BTreeSet::new() };
        let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[key]).unwrap();
        self.ledger.add_to_mempool(&built.cbor).unwrap();
        self.ledger.mine();
        built.facts.tx_id
    }

    fn first_output(&self, tx: &TxHash) -> Escrow {
        Escrow::read(self.ledger.output(TxRef { tx: *tx, index: 0 }), &self.deployment).unwrap()
    }

    /// Advances the clock to the time from which arbiters may settle disputes.
    pub fn open_window(&self) {
        self.ledger.advance(50 * 60_000);
    }

    pub async fn resolve(&self, request: &ResolveRequest) -> Result<ResolveResult, ResolveError> {
        let arbiter = Arbiter {
            database: &self.database,
            chain: &self.ledger,
            sleep: &self.ledger,
            deployment: &self.deployment,
            key: &self.arbiter,
            slots: &SLOTS,
            now: self.ledger.now(),
        };
        arbiter.resolve(request).await
    }

    /// Returns the transaction that paid the award. Fails the test if it is not paid.
    pub fn paid(&self, request: &ResolveRequest) -> TxHash {
        award_in(block(self.resolve(request)))
    }

    /// Returns the states of the arbiter's outbox entries, oldest first.
    pub fn states(&self) -> Vec<String> {
        block(self.database.fetch::<Vec<String>>(sql::read!("SELECT state FROM outbox ORDER BY created_at_ms, tx_id")))
            .unwrap()
    }
}

/// Returns the transaction that paid the award, from the response to a request. Fails the test if it is not paid.
pub fn award_in(answer: Result<ResolveResult, ResolveError>) -> TxHash {
    match answer {
        Ok(ResolveResult::Paid { tx, .. }) => tx,
        other => panic!("not paid: {other:?}"),
    }
}

pub const LITTLE: ExUnits = ExUnits { mem: 1_000, steps: 1_000 };

fn at_script(script: ScriptHash, lovelace: Lovelace, datum: Vec<u8>) -> NewOutput {
    let value = Value { lovelace, ..Value::default() };
    NewOutput { to: PaymentAddress::script(script), value, inline_datum: Some(datum), script: None }
}

/// Creates an output that exists on the ledger from the beginning.
pub fn coin(address: String, number: u16, lovelace: u64) -> Utxo {
    let tx = TxHash::new(*ContentHash::of(address.as_bytes()).as_bytes());
    Utxo {
        reference: TxRef { tx, index: number },
        address,
        value: Value { lovelace: Lovelace::new(lovelace).unwrap(), ..Value::default() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

/// Time at which the ledger starts, in POSIX milliseconds.
pub const NOON: Millis = 1_785_758_400_000;
