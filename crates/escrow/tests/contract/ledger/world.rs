//! A local ledger with a deployed contract, three wallets, and escrows in any state.

use std::collections::BTreeSet;

use super::devnet::Devnet;
use crate::blueprint;
use cardano::{
    Address, Lovelace, TxRef,
    address::PaymentAddress,
    chain::{Submission, Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{BuiltTx, NewOutput, TxPlan, UnsignedTx, Validity, Wallet, build},
};
use surety_escrow::{
    Datum, Deadlines, Deployment, Parameters, State,
    plan::{ChainTime, Escrow, Planner},
};

const COOLDOWN: Millis = 60_000;

pub struct EscrowLedger {
    pub devnet: Devnet,
    pub parameters: ProtocolParameters,
    pub deployment: Deployment,
    pub slots: SlotConfig,
    pub buyer: SigningKey,
    pub seller: SigningKey,
    pub arbiter: SigningKey,
    locks: u8,
}

impl EscrowLedger {
    pub fn new() -> Self {
        let [buyer, seller, arbiter] = [1, 2, 3].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let devnet = Devnet::start();
        let admins =
            Parameters { required_admins: 1, admin_vkeys: vec![arbiter.key_hash()], cooldown_period: COOLDOWN };
        let script = blueprint().apply(&admins).unwrap();
        let mut world = Self {
            parameters: devnet.parameters(),
            deployment: Deployment {
                script_hash: script.hash,
                parameters: admins,
                reference_script: TxRef { tx: cardano::TxHash::new([0; 32]), index: 0 },
                reference_script_bytes: u32::try_from(script.cbor.len()).unwrap(),
                blueprint_sha256: None,
            },
            devnet,
            slots: SlotConfig::PREPROD,
            buyer,
            seller,
            arbiter,
            locks: 0,
        };
        for key in [&world.buyer, &world.seller, &world.arbiter] {
            world.devnet.give(&key.enterprise_address(), Lovelace::from_ada(10_000));
        }
        world.publish(script.cbor);
        world
    }

    fn publish(&mut self, script: Vec<u8>) {
        let mut output = NewOutput::pay(self.arbiter.enterprise_address(), Lovelace::ZERO);
        output.script = Some(script);
        output.value.lovelace = output.min_lovelace(&self.parameters).unwrap();
        let plan = TxPlan { outputs: vec![output], validity: self.soon(), ..TxPlan::default() };
        let built = self.send(&plan, &self.arbiter.clone());
        self.deployment.reference_script = built.facts.outputs[0].reference;
    }

    pub fn planner(&self) -> Planner<'_> {
        Planner { deployment: &self.deployment, parameters: &self.parameters, slots: &self.slots }
    }

    /// Returns the time of the newest block, which is the only clock in these tests.
    pub fn time(&self) -> ChainTime {
        let tip = self.devnet.tip();
        ChainTime { tip_slot: tip.slot, now: tip.time_ms }
    }

    fn soon(&self) -> Validity {
        Validity { from: None, until: self.time().tip_slot + 600 }
    }

    /// Builds the datum of a new lock with these deadlines and a new reference signature.
    pub fn fresh(&mut self, deadlines: Deadlines) -> Datum {
        self.locks += 1;
        Datum {
            buyer: self.buyer.enterprise_address().into(),
            buyer_return_address: None,
            seller: self.seller.enterprise_address().into(),
            seller_return_address: None,
            reference_key: vec![0x42; 42],
            reference_signature: [vec![self.locks; 16], vec![0x55; 150]].concat(),
            seller_nonce: vec![self.locks; 32],
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: Lovelace::ZERO,
            input_hash: vec![0x44; 32],
            result_hash: vec![],
            deadlines,
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: State::FundsLocked,
        }
    }

    /// Creates an escrow output for each datum, whatever it contains, because the contract does not run when an output
    /// is created.
    pub fn lock(&self, datums: &[Datum], locked: Lovelace) -> Vec<Escrow> {
        let outputs = datums.iter().map(|datum| NewOutput {
            to: PaymentAddress::script(self.deployment.script_hash),
            value: Value { lovelace: locked, ..Value::default() },
            inline_datum: Some(datum.to_cbor()),
            script: None,
        });
        let plan = TxPlan { outputs: outputs.collect(), validity: self.soon(), ..TxPlan::default() };
        let built = self.send(&plan, &self.buyer);
        let address = self.deployment.address().to_string();
        let on_chain = self.devnet.utxos_at(&address);
        let made = |index: usize| {
            let reference = TxRef { tx: built.facts.tx_id, index: u16::try_from(index).unwrap() };
            let utxo = on_chain.iter().find(|utxo| utxo.reference == reference).unwrap().clone();
            Escrow::read(utxo, &self.deployment).unwrap()
        };
        (0..datums.len()).map(made).collect()
    }

    fn send(&self, plan: &TxPlan, key: &SigningKey) -> BuiltTx {
        let utxos = self.utxos(key);
        let draft = build(plan, &wallet(key, &utxos), &self.parameters).unwrap();
        self.accept(draft, key)
    }

    pub fn utxos(&self, key: &SigningKey) -> Vec<Utxo> {
        self.devnet.utxos_at(&key.enterprise_address().to_string())
    }

    /// Signs and submits a transaction, and waits for its inclusion.
    pub fn accept(&self, draft: UnsignedTx, key: &SigningKey) -> BuiltTx {
        let built = draft.sign(&[key]).unwrap();
        assert_eq!(self.devnet.submit(&built.cbor), Submission::Accepted);
        self.devnet.make_block();
        built
    }

    /// Reads the escrow in the transaction's first output.
    pub fn continued(&self, built: &BuiltTx) -> Escrow {
        Escrow::read(self.outputs_of(built).remove(0), &self.deployment).unwrap()
    }

    /// Reads a transaction's outputs from the ledger.
    pub fn outputs_of(&self, built: &BuiltTx) -> Vec<Utxo> {
        self.devnet.outputs_of(&built.facts.tx_id)
    }
}

static NONE: BTreeSet<TxRef> = BTreeSet::new();

pub fn wallet<'a>(key: &SigningKey, utxos: &'a [Utxo]) -> Wallet<'a> {
    Wallet { address: key.enterprise_address(), utxos, reserved: &NONE }
}

/// Sums the lovelace that a transaction pays to an address.
pub fn paid_to(built: &BuiltTx, address: &Address) -> Lovelace {
    let text = address.to_string();
    built.facts.outputs.iter().filter(|output| output.address == text).map(|output| output.value.lovelace).sum()
}
