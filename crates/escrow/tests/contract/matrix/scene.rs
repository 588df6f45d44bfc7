//! Valid transactions, built by the planner, from which the cases of the matrix start.

use std::sync::LazyLock;

use cardano::{
    ContentHash, KeyHash, Lovelace, ScriptHash, TxHash, TxRef, blockfrost,
    chain::{Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::Validity,
};
use surety_escrow::{
    Action, AdminSignature, AssetValue, Credential, Datum, Deadlines, Deployment, Parameters, PlutusAddress, Redeemer,
    State, admin,
    dispute::DisputeWithdrawal,
    plan::{Escrow, Planner, Step},
    rules::{Effect, ResultChange, Rule, ValidityRange, Window},
};

use super::transaction::{DatumOption, TxIn, TxInfo, TxOut, key_address, lovelace};

/// Deadline `pay_by` of the escrow under test in POSIX milliseconds: a whole second in 2026.
pub const PAY_BY: Millis = 1_785_756_000_000;
const HOUR: Millis = 3_600_000;
/// Amounts in lovelace of the escrow under test: the locked amount, the buyer's collateral in it, and both shares of
/// the arbiters' award.
pub const LOCKED: u64 = 7_000_000;
pub const COLLATERAL: u64 = 1_435_230;
pub const BUYER_SHARE: u64 = 3_000_000;
pub const SELLER_SHARE: u64 = 3_500_000;
/// Protected headers of an arbiter's signature, `{1: -8}`: the algorithm EdDSA.
pub const HEADERS: &[u8] = &[0xa1, 0x01, 0x27];

pub const BUYER: KeyHash = KeyHash::new([0x11; 28]);
pub const SELLER: KeyHash = KeyHash::new([0x22; 28]);
pub const STRANGER: KeyHash = KeyHash::new([0x33; 28]);
/// Placeholder for the script's own hash, which depends on the blueprint. [`TxInfo::under`] replaces it.
pub const SCRIPT: ScriptHash = ScriptHash::new([0x5c; 28]);
pub const AT_SCRIPT: PlutusAddress = PlutusAddress::script(SCRIPT);
/// References of the escrow under test, of the wallet output that pays the fee, and of the output with the reference
/// script.
pub const OWN: TxRef = TxRef { tx: TxHash::new([0xcd; 32]), index: 1 };
const WALLET: TxRef = TxRef { tx: TxHash::new([0xab; 32]), index: 0 };
pub const REFERENCE_SCRIPT: TxRef = TxRef { tx: TxHash::new([0xee; 32]), index: 0 };

/// Preprod's protocol parameters, as used by the local ledger.
pub static LIVE: LazyLock<ProtocolParameters> =
    LazyLock::new(|| blockfrost::protocol_parameters(include_bytes!("../../../../../devnet/parameters.json")).unwrap());

/// An arbiter, whose key is derived from this number.
#[derive(Clone, Copy, Debug)]
pub struct Admin(pub u8);

impl Admin {
    fn key(self) -> SigningKey {
        SigningKey::from_seed(&[self.0; 32]).unwrap()
    }

    pub fn key_hash(self) -> KeyHash {
        self.key().key_hash()
    }

    pub fn signs(self, headers: &[u8], payload: &[u8]) -> AdminSignature {
        AdminSignature {
            verification_key: self.key().public_key().to_vec(),
            protected_headers: headers.to_vec(),
            signature: self.key().sign(&admin::sig_structure(headers, payload)).to_vec(),
        }
    }
}

/// Builds the datum of the escrow under test in this state, with a result hash if honest parties would have submitted a
/// result by then.
pub fn escrow(state: State) -> Datum {
    let has_result = matches!(state, State::ResultSubmitted | State::Disputed | State::WithdrawAuthorized);
    Datum {
        buyer: key_address(BUYER),
        buyer_return_address: None,
        seller: key_address(SELLER),
        seller_return_address: None,
        reference_key: vec![0xa4; 42],
        reference_signature: vec![0x55; 180],
        seller_nonce: vec![0x44; 32],
        buyer_nonce: vec![0x66; 8],
        agent_identifier: vec![0x77; 60],
        collateral_return: Lovelace::new(COLLATERAL).unwrap(),
        input_hash: vec![0x88; 32],
        result_hash: if has_result { vec![0x99; 32] } else { vec![] },
        deadlines: Deadlines {
            pay_by: PAY_BY,
            submit_result: PAY_BY + HOUR,
            unlock: PAY_BY + 2 * HOUR,
            external_dispute_unlock: PAY_BY + 3 * HOUR,
        },
        seller_cooldown: PAY_BY + 1_000,
        buyer_cooldown: PAY_BY + 2_000,
        state,
    }
}

/// An action on an escrow, from which a test transaction is built.
#[derive(Clone, Debug)]
pub struct Spending {
    pub parameters: Parameters,
    pub own: TxRef,
    pub datum: Datum,
    pub value: Value,
    pub action: Action,
    pub validity: ValidityRange,
}

impl Spending {
    /// Creates an action on the escrow under test in this state, at a time at which it is permitted. Two of three
    /// arbiters must sign awards.
    pub fn new(action: Action, state: State) -> Self {
        Self::of(action, escrow(state))
    }

    /// Creates an action on the escrow with this datum. The validity interval is as wide as permitted, in whole
    /// seconds.
    pub fn of(action: Action, datum: Datum) -> Self {
        let rule = Rule::find(action, &nearest(action, &datum)).unwrap();
        let Window { opens, closes } = rule.window(&datum);
        let from = if rule.starts.is_empty() { PAY_BY } else { opens };
        let until = closes.map_or(from + 600_000, |closes| closes - 1_000);
        let admin_vkeys = [1, 2, 3].map(|number| Admin(number).key_hash()).to_vec();
        Self {
            parameters: Parameters { required_admins: 2, admin_vkeys, cooldown_period: 60_000 },
            own: OWN,
            datum,
            value: lovelace(LOCKED),
            action,
            validity: ValidityRange { from: Some(from), until: Some(until) },
        }
    }

    /// Builds the transaction with the planner. If the planner refuses because the contract must reject the action,
    /// builds it for the most similar escrow for which there is a plan, and then restores this escrow's datum.
    pub fn transaction(&self) -> TxInfo {
        let planned = self.plannable();
        let deployment = Deployment {
            script_hash: SCRIPT,
            parameters: self.parameters.clone(),
            reference_script: REFERENCE_SCRIPT,
            reference_script_bytes: 5_000,
            blueprint_sha256: None,
        };
        let utxo = Utxo {
            reference: self.own,
            address: AT_SCRIPT.to_string(),
            value: self.value.clone(),
            inline_datum: Some(planned.to_cbor()),
            datum_hash: None,
            reference_script: None,
        };
        let planner = Planner { deployment: &deployment, parameters: &LIVE, slots: &SlotConfig::PREPROD };
        let slot = |time: Option<Millis>| SlotConfig::PREPROD.slot_at(time.unwrap());
        let validity = Validity { from: slot(self.validity.from), until: slot(self.validity.until).unwrap() };
        let planned_escrow = Escrow { utxo, datum: planned.clone() };
        let plan = planner.plan_within(&planned_escrow, &self.step(), validity).unwrap();

        let wallet = TxOut::new(key_address(STRANGER), lovelace(10_000_000), DatumOption::None);
        let mut outputs: Vec<TxOut> = plan.outputs.iter().map(TxOut::from).collect();
        if planned != self.datum {
            outputs.iter_mut().for_each(|output| self.in_own_terms(output, &planned));
        }
        outputs.push(wallet.clone());
        let own = TxOut::new(AT_SCRIPT, self.value.clone(), DatumOption::Inline(self.datum.to_cbor()));
        TxInfo {
            inputs: vec![
                TxIn { reference: WALLET, output: wallet, redeemer: None },
                TxIn { reference: self.own, output: own, redeemer: Some(plan.script_inputs[0].redeemer.clone()) },
            ],
            outputs,
            signers: plan.required_signers,
            validity: self.validity,
        }
    }

    /// Returns this escrow's datum, or the most similar one for which the planner has a plan.
    fn plannable(&self) -> Datum {
        let as_key = |party: PlutusAddress| match party.payment {
            Credential::Script(hash) => {
                PlutusAddress { payment: Credential::Key(KeyHash::new(*hash.as_bytes())), ..party }
            }
            Credential::Key(_) => party,
        };
        Datum {
            buyer: as_key(self.datum.buyer),
            seller: as_key(self.datum.seller),
            collateral_return: self.datum.collateral_return.min(self.value.lovelace),
            ..nearest(self.action, &self.datum)
        }
    }

    fn in_own_terms(&self, output: &mut TxOut, planned: &Datum) {
        let rule = Rule::find(self.action, planned).unwrap();
        let keeps = matches!(rule.effect, Effect::Continue { result: ResultChange::Keep, .. });
        for (theirs, own) in [(planned.buyer, self.datum.buyer), (planned.seller, self.datum.seller)] {
            output.address = if output.address == theirs { own } else { output.address };
        }
        output.edit(|next| {
            (next.buyer, next.seller) = (self.datum.buyer, self.datum.seller);
            next.collateral_return = self.datum.collateral_return;
            if keeps {
                next.result_hash = self.datum.result_hash.clone();
            }
        });
    }

    fn step(&self) -> Step {
        match self.action {
            Action::SubmitResult => Step::SubmitResult(ContentHash::new([0xaa; 32])),
            Action::SetRefundRequested => Step::SetRefundRequested,
            Action::AuthorizeWithdrawal => Step::AuthorizeWithdrawal,
            Action::AuthorizeRefund => Step::AuthorizeRefund,
            Action::Withdraw => Step::Withdraw { payouts: vec![] },
            Action::WithdrawRefund => Step::WithdrawRefund,
            Action::WithdrawDisputed => {
                let intent = self.decision();
                let digest = intent.digest();
                Step::WithdrawDisputed { intent, signatures: [1, 2].map(|n| Admin(n).signs(HEADERS, &digest)).to_vec() }
            }
        }
    }

    /// Returns the award that the arbiters of the test sign.
    pub fn decision(&self) -> DisputeWithdrawal {
        let share = |amount| AssetValue::lovelace(Lovelace::new(amount).unwrap());
        DisputeWithdrawal { own_ref: self.own, buyer_value: share(BUYER_SHARE), seller_value: share(SELLER_SHARE) }
    }

    /// Builds the redeemer that settles the dispute, with signatures of the award by the arbiters with these numbers.
    pub fn award(&self, admins: &[u8]) -> Redeemer {
        let digest = self.decision().digest();
        settle(self.decision(), admins.iter().map(|number| Admin(*number).signs(HEADERS, &digest)).collect())
    }
}

pub fn settle(decision: DisputeWithdrawal, admin_signatures: Vec<AdminSignature>) -> Redeemer {
    let DisputeWithdrawal { buyer_value, seller_value, .. } = decision;
    Redeemer::WithdrawDisputed { buyer_value, seller_value, admin_signatures }
}

/// Returns `datum` if the table permits the action on it, and otherwise a copy with the state or the result hash
/// changed so that the table does.
pub fn nearest(action: Action, datum: &Datum) -> Datum {
    let with = |result_hash: &Vec<u8>, state| Datum { result_hash: result_hash.clone(), state, ..datum.clone() };
    let results = [datum.result_hash.clone(), vec![], vec![0x99; 32]];
    let states: Vec<State> = std::iter::once(datum.state).chain(State::ALL).collect();
    let mut near = results.iter().flat_map(|result| states.iter().map(move |state| with(result, *state)));
    near.find(|near| Rule::find(action, near).is_some()).unwrap()
}
