//! Transactions that keep every rule. Each case of the matrix is one of these, with at most one thing changed.

use cardano::{KeyHash, ScriptHash, TxHash, TxRef, slots::Millis};
use ed25519_compact::{KeyPair, Seed};
use escrow::{
    Action, AdminSignature, AssetValue, Credential, Datum, Deadlines, Parameters, PlutusAddress, Redeemer,
    datum::State,
    dispute::DisputeWithdrawal,
    rules::{Effect, Party, PayoutRule, Rule, ValidityRange},
};

use super::{
    transaction::{Attached, Handed, Input, Output, Transaction, Value},
    votes,
};

/// When the escrow of the cases must be paid: a whole second, in 2026.
pub const PAY_BY: Millis = 1_785_756_000_000;
/// An hour, by which its deadlines are apart.
const HOUR: Millis = 3_600_000;
/// What is locked in it, lovelace.
pub const LOCKED: u64 = 7_000_000;
/// What of that is the buyer's in any case.
pub const COLLATERAL: u64 = 1_435_230;
/// What the admins grant the buyer.
pub const BUYER_SHARE: u64 = 3_000_000;
/// What the admins grant the seller; the rest is the sender's.
pub const SELLER_SHARE: u64 = 3_500_000;
/// Protected headers `{1: -8}`: alg EdDSA.
pub const HEADERS: &[u8] = &[0xa1, 0x01, 0x27];

/// The buyer's key.
pub const BUYER: KeyHash = KeyHash::new([0x11; 28]);
/// The seller's key.
pub const SELLER: KeyHash = KeyHash::new([0x22; 28]);
/// Nobody's key.
pub const STRANGER: KeyHash = KeyHash::new([0x33; 28]);

/// Stands for the script's own hash, which depends on the blueprint: see [`Transaction::under`].
pub const SCRIPT: ScriptHash = ScriptHash::new([0x5c; 28]);
/// Where the escrows of the cases lie.
pub const AT_SCRIPT: PlutusAddress = PlutusAddress::script(SCRIPT);

/// The name of the escrow that the cases spend.
pub const OWN: TxRef = TxRef { tx: TxHash::new([0xcd; 32]), index: 1 };
/// The wallet's output that pays the fee.
pub const WALLET: TxRef = TxRef { tx: TxHash::new([0xab; 32]), index: 0 };

/// A key's address without a stake credential.
#[must_use]
pub const fn key_address(key: KeyHash) -> PlutusAddress {
    PlutusAddress { payment: Credential::Key(key), stake: None }
}

/// An admin of the cases: a key pair made from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admin(pub u8);

impl Admin {
    fn keys(self) -> KeyPair {
        KeyPair::from_seed(Seed::new([self.0; 32]))
    }

    /// The hash of its key.
    #[must_use]
    pub fn key_hash(self) -> KeyHash {
        KeyHash::of_public_key(&self.keys().pk)
    }

    /// Its signature over a payload, the CIP-8 way.
    #[must_use]
    pub fn signs(self, headers: &[u8], payload: &[u8]) -> AdminSignature {
        let keys = self.keys();
        AdminSignature {
            verification_key: keys.pk.to_vec(),
            protected_headers: headers.to_vec(),
            signature: keys.sk.sign(votes::sig_structure(headers, payload), None).to_vec(),
        }
    }
}

/// Two of three admins, a minute of cooldown.
#[must_use]
pub fn parameters() -> Parameters {
    Parameters {
        required_admins: 2,
        admin_vkeys: [1, 2, 3].map(|n| Admin(n).key_hash()).to_vec(),
        cooldown_period: 60_000,
    }
}

/// An escrow in this state, with the result that it has there by honest ways.
#[must_use]
pub fn escrow(state: State) -> Datum {
    let result_hash = match state {
        State::ResultSubmitted | State::Disputed | State::WithdrawAuthorized => vec![0x99; 32],
        State::FundsLocked | State::RefundRequested | State::RefundAuthorized => vec![],
    };
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
        collateral_return: cardano::Lovelace::new(COLLATERAL).unwrap_or_default(),
        input_hash: vec![0x88; 32],
        result_hash,
        deadlines: Deadlines {
            pay_by: PAY_BY,
            submit_result: PAY_BY.saturating_add(HOUR),
            unlock: PAY_BY.saturating_add(2 * HOUR),
            external_dispute_unlock: PAY_BY.saturating_add(3 * HOUR),
        },
        seller_cooldown: PAY_BY.saturating_add(1_000),
        buyer_cooldown: PAY_BY.saturating_add(2_000),
        state,
    }
}

/// A validity in which the rule permits its action: it begins as early and ends as late as it may, in whole seconds.
#[must_use]
pub fn validity(rule: &Rule, datum: &Datum) -> ValidityRange {
    let window = rule.window(datum);
    let from = if rule.starts.is_empty() { PAY_BY } else { window.opens };
    let until = match window.closes {
        Some(closes) => closes.saturating_sub(1_000),
        None => from.saturating_add(600_000),
    };
    ValidityRange { from: Some(from), until: Some(until) }
}

/// An action on an escrow, to be made a transaction.
#[derive(Clone, Debug)]
pub struct Spending {
    /// The script's parameters.
    pub parameters: Parameters,
    /// The escrow's output.
    pub own: TxRef,
    /// The escrow.
    pub datum: Datum,
    /// What it holds.
    pub value: Value,
    /// What is done.
    pub action: Action,
    /// When.
    pub validity: ValidityRange,
}

impl Spending {
    /// An action on the escrow of the cases in this state, under the parameters of the cases, at a permitted time.
    #[must_use]
    pub fn new(action: Action, state: State) -> Self {
        Self::of(action, escrow(state))
    }

    /// An action on this escrow, under the parameters of the cases, at a permitted time.
    #[must_use]
    pub fn of(action: Action, datum: Datum) -> Self {
        let always = ValidityRange { from: Some(PAY_BY), until: Some(PAY_BY.saturating_add(HOUR)) };
        let validity = nearest_rule(action, &datum).map_or(always, |rule| validity(rule, &datum));
        Self { parameters: parameters(), own: OWN, datum, value: Value::lovelace(LOCKED), action, validity }
    }

    /// The transaction that keeps every rule, or, where the table has no row for the action, keeps those of the row
    /// that comes nearest: the action's own in another state.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        let rule = nearest_rule(self.action, &self.datum);
        let redeemer = match Redeemer::plain(self.action) {
            Some(redeemer) => redeemer,
            None => self.settlement(&[Admin(1), Admin(2)]),
        };
        let wallet = Output {
            address: key_address(STRANGER),
            value: Value::lovelace(10_000_000),
            attached: Attached::Nothing,
            has_script: false,
        };
        let mut outputs = match rule.map(|rule| (rule, rule.effect)) {
            Some((rule, Effect::Continue { .. })) => vec![self.continuation(rule)],
            Some((_, Effect::End(payout))) => self.payouts(payout),
            None => vec![],
        };
        outputs.push(wallet.clone());
        let signer = rule.and_then(|rule| match rule.by {
            Party::Buyer => Some(BUYER),
            Party::Seller => Some(SELLER),
            Party::Arbiters => None,
        });
        Transaction {
            inputs: vec![Input { reference: WALLET, output: wallet, handed: None }, self.input(redeemer)],
            outputs,
            signers: signer.into_iter().collect(),
            validity: self.validity,
        }
    }

    /// The escrow as the transaction spends it.
    #[must_use]
    pub fn input(&self, redeemer: Redeemer) -> Input {
        let attached = Attached::Escrow(Box::new(self.datum.clone()));
        let output = Output { address: AT_SCRIPT, value: self.value.clone(), attached, has_script: false };
        Input { reference: self.own, output, handed: Some(Handed::Action(redeemer)) }
    }

    fn continuation(&self, rule: &Rule) -> Output {
        let now = self.validity.until.unwrap_or(PAY_BY);
        let posted = cardano::ContentHash::new([0xaa; 32]);
        let next = rule.next(&self.datum, now, self.parameters.cooldown_period, Some(&posted));
        let attached = Attached::Escrow(Box::new(next.unwrap_or_else(|| self.datum.clone())));
        Output { address: AT_SCRIPT, value: self.value.clone(), attached, has_script: false }
    }

    /// Pays both parties what this payout owes them at the least.
    fn payouts(&self, payout: PayoutRule) -> Vec<Output> {
        let collateral = self.datum.collateral_return.get();
        let whole = self.value.clone();
        let rest = Value { lovelace: whole.lovelace.saturating_sub(collateral), tokens: whole.tokens.clone() };
        let (buyer, seller) = match payout {
            PayoutRule::SellerCollects => (Some(Value::lovelace(collateral)), Some(rest)),
            PayoutRule::BuyerRefunded => (Some(whole), None),
            PayoutRule::AsSigned => (Some(Value::lovelace(BUYER_SHARE)), Some(Value::lovelace(SELLER_SHARE))),
        };
        let parties = [(self.datum.buyer_payout_address(), buyer), (self.datum.seller_payout_address(), seller)];
        let paid = parties.into_iter().filter_map(|(to, value)| Some((to, value?)));
        paid.filter(|(_, value)| value.lovelace > 0).map(|(to, value)| self.tagged(to, value)).collect()
    }

    /// A payment in the escrow's name.
    #[must_use]
    pub const fn tagged(&self, address: PlutusAddress, value: Value) -> Output {
        Output { address, value, attached: Attached::Tag(self.own), has_script: false }
    }

    /// The decision that the admins of the cases sign.
    #[must_use]
    pub fn decision(&self) -> DisputeWithdrawal {
        let lovelace = |amount| AssetValue::lovelace(cardano::Lovelace::new(amount).unwrap_or_default());
        DisputeWithdrawal {
            own_ref: self.own,
            buyer_value: lovelace(BUYER_SHARE),
            seller_value: lovelace(SELLER_SHARE),
        }
    }

    /// The redeemer of that decision, signed by these admins.
    #[must_use]
    pub fn settlement(&self, admins: &[Admin]) -> Redeemer {
        let decision = self.decision();
        let digest = decision.digest();
        settle(decision, admins.iter().map(|admin| admin.signs(HEADERS, &digest)).collect())
    }
}

/// The redeemer of a decision.
#[must_use]
pub fn settle(decision: DisputeWithdrawal, admin_signatures: Vec<AdminSignature>) -> Redeemer {
    let DisputeWithdrawal { buyer_value, seller_value, .. } = decision;
    Redeemer::WithdrawDisputed { buyer_value, seller_value, admin_signatures }
}

/// The table's row, or, where it has none, the action's row in another state.
#[must_use]
pub fn nearest_rule(action: Action, datum: &Datum) -> Option<&'static Rule> {
    let elsewhere = |state| Rule::find(action, &Datum { state, ..datum.clone() });
    Rule::find(action, datum)
        .or_else(|| State::ALL.into_iter().find_map(elsewhere))
        .or_else(|| escrow::rules::RULES.iter().find(|rule| rule.action == action))
}
