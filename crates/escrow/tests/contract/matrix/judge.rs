//! Our rules for a whole transaction: the table in [`surety_escrow::rules`], and the rules about outputs: several
//! escrows in one transaction, values, payouts and votes.
//!
//! Every broken rule is reported, not only the first. A case that breaks exactly one rule shows that the contract
//! enforces that rule.

use std::collections::HashSet;

use cardano::{Lovelace, TxRef, chain::Value, keys::Native, slots::Millis};
use futures_lite::future::block_on;
use surety_escrow::{
    Action, AssetValue, Credential, Datum, MIN_REFERENCE_SIGNATURE_BYTES, Parameters, PlutusAddress, Redeemer, admin,
    dispute::DisputeWithdrawal,
    rules::{ContractRefusal, Effect, PayoutRule, Rule},
};

use super::transaction::{DatumOption, TxInfo, TxOut, tag};

/// A rule that a transaction breaks. Each variant's comment states the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broken {
    /// The spent output's datum is of the contract's type.
    SpentIsEscrow,
    /// The redeemer is one of the contract's actions.
    RedeemerIsAction,
    /// The address of the acting party has a key credential.
    ActorHasKey,
    /// The address of the party that does not act has a key credential, too. Stricter than the published validator.
    OtherPartyHasKey,
    /// A reference signature has at least 16 bytes.
    ReferenceIsLong,
    /// The validity interval has an upper bound, and a lower bound if the action becomes possible only at some time.
    Bounded,
    /// No two script inputs have the same reference signature.
    InputsDiffer,
    /// An escrow whose output contains only the datum's hash is spent alone. Stricter than the published validator.
    HashedAlone,
    /// Every output at the script's address is an escrow with an inline datum.
    OutputIsEscrow,
    /// No output at the script's address carries a reference script.
    OutputHasNoScript,
    /// No two outputs at the script's address have the same reference signature.
    OutputsDiffer,
    /// The action is possible in the escrow's state and with its result hash.
    State,
    /// A refund is requested only of an escrow whose result hash fits its state. Stricter than the published validator.
    StateFitsResult,
    /// The acting party signed.
    Signed,
    /// The action's time window has opened.
    NotEarly,
    /// The action's time window has not closed.
    NotLate,
    /// At least the buyer's collateral is locked.
    CollateralLocked,
    /// The escrow continues in an output at the script's address.
    Continues,
    /// The datum of the continuing escrow is the one that follows from the action.
    TermsFollow,
    /// The continuing escrow keeps its value, and nothing but lovelace is added.
    ValueKept,
    /// The escrow does not continue.
    Ends,
    /// The buyer gets the collateral.
    CollateralReturned,
    /// The seller's return address gets everything but the collateral.
    SellerPaid,
    /// The buyer's return address gets everything.
    BuyerPaid,
    /// The buyer gets the share that the arbiters signed.
    BuyerShare,
    /// The seller gets the share that the arbiters signed.
    SellerShare,
    /// Signed shares repeat no policy, contain no quantity of zero, and their asset names ascend.
    SharesAreValues,
    /// The policies of signed shares ascend. Stricter than the published validator.
    PoliciesAscend,
    /// The usable signatures have enough votes, and there are no more signatures than arbiters.
    Votes,
}

impl Broken {
    #[rustfmt::skip]
    pub const ALL: [Self; 29] = [
        Self::SpentIsEscrow, Self::RedeemerIsAction, Self::ActorHasKey, Self::OtherPartyHasKey, Self::ReferenceIsLong,
        Self::Bounded, Self::InputsDiffer, Self::HashedAlone, Self::OutputIsEscrow, Self::OutputHasNoScript,
        Self::OutputsDiffer, Self::State, Self::StateFitsResult, Self::Signed, Self::NotEarly, Self::NotLate,
        Self::CollateralLocked, Self::Continues, Self::TermsFollow, Self::ValueKept, Self::Ends, Self::CollateralReturned,
        Self::SellerPaid, Self::BuyerPaid, Self::BuyerShare, Self::SellerShare, Self::SharesAreValues,
        Self::PoliciesAscend, Self::Votes,
    ];

    /// Returns `true` if our contract enforces this rule and the published validator does not, so another contract need
    /// not enforce it either.
    pub const fn is_ours_alone(self) -> bool {
        matches!(self, Self::OtherPartyHasKey | Self::StateFitsResult | Self::HashedAlone | Self::PoliciesAscend)
    }
}

impl From<ContractRefusal> for Broken {
    fn from(refusal: ContractRefusal) -> Self {
        match refusal {
            ContractRefusal::State => Self::State,
            ContractRefusal::NoKey => Self::ActorHasKey,
            ContractRefusal::NotSigned => Self::Signed,
            ContractRefusal::Unbounded => Self::Bounded,
            ContractRefusal::TooEarly(_) => Self::NotEarly,
            ContractRefusal::TooLate(_) => Self::NotLate,
            ContractRefusal::ReferenceSignature => Self::ReferenceIsLong,
            ContractRefusal::Collateral => Self::CollateralLocked,
        }
    }
}

/// Returns the rules that a transaction breaks for any of the escrows that it spends; empty if the contract must accept
/// it.
pub fn broken(parameters: &Parameters, transaction: &TxInfo) -> Vec<Broken> {
    let spends = transaction.inputs.iter().filter_map(|input| Some((input, input.redeemer.as_ref()?)));
    let judged = spends.flat_map(|(input, redeemer)| {
        let datum = match &input.output.datum {
            DatumOption::Inline(cbor) | DatumOption::Hash(cbor) => Datum::from_cbor(cbor).ok(),
            DatumOption::None => None,
        };
        let Some(datum) = datum else { return vec![Broken::SpentIsEscrow] };
        let Ok(redeemer) = Redeemer::from_cbor(redeemer) else { return vec![Broken::RedeemerIsAction] };
        let Some(now) = transaction.validity.until else { return vec![Broken::Bounded] };
        let (spent, own) = (&input.output, input.reference);
        let mut spend = EscrowSpend { parameters, transaction, own, spent, datum, broken: vec![] };
        spend.judge(&redeemer, now);
        spend.broken
    });
    let mut broken: Vec<Broken> = judged.collect();
    broken.sort_unstable();
    broken.dedup();
    broken
}

struct EscrowSpend<'a> {
    parameters: &'a Parameters,
    transaction: &'a TxInfo,
    own: TxRef,
    spent: &'a TxOut,
    datum: Datum,
    broken: Vec<Broken>,
}

impl EscrowSpend<'_> {
    fn require(&mut self, holds: bool, rule: Broken) {
        if !holds {
            self.broken.push(rule);
        }
    }

    fn judge(&mut self, redeemer: &Redeemer, now: Millis) {
        let action = redeemer.action();
        self.require(is_long(&self.datum), Broken::ReferenceIsLong);
        let rule = Rule::find(action, &self.datum);
        let is_key = |party: PlutusAddress| matches!(party.payment, Credential::Key(_));
        let all_keys = is_key(self.datum.buyer) && is_key(self.datum.seller);
        let actor_has_key = rule.is_none_or(|rule| rule.signer(&self.datum).is_ok());
        self.require(all_keys || !actor_has_key, Broken::OtherPartyHasKey);
        self.inputs();
        let continuation = self.outputs();
        let Some(rule) = rule else {
            self.broken.push(self.missing_row(action));
            return;
        };
        let TxInfo { validity, signers, .. } = self.transaction;
        let refusals = rule.refusals(&self.datum, self.spent.value.lovelace, *validity, signers);
        self.broken.extend(refusals.map(Broken::from));
        match (rule.effect, continuation) {
            (Effect::Continue { .. }, Some(next)) => self.continuation(rule, &next, now),
            (Effect::Continue { .. }, None) => self.broken.push(Broken::Continues),
            (Effect::End(payout), continuation) => {
                self.require(continuation.is_none(), Broken::Ends);
                self.payout(payout, redeemer);
            }
        }
    }

    fn inputs(&mut self) {
        let there = self.transaction.inputs.iter().map(|input| &input.output);
        let there: Vec<_> = there.filter(|output| output.address == self.spent.address).collect();
        let hashed = there.iter().any(|output| matches!(output.datum, DatumOption::Hash(_)));
        self.require(there.len() == 1 || !hashed, Broken::HashedAlone);
        let mut seen = HashSet::new();
        let differ =
            there.iter().filter_map(|output| output.escrow()).all(|datum| seen.insert(datum.reference_signature));
        self.require(differ, Broken::InputsDiffer);
    }

    /// Checks the outputs at the script's address and returns the one in which the escrow continues.
    fn outputs(&mut self) -> Option<(Datum, Value)> {
        let (mut seen, mut continuation) = (HashSet::new(), None);
        for output in self.transaction.outputs.iter().filter(|output| output.address == self.spent.address) {
            self.require(!output.has_script, Broken::OutputHasNoScript);
            let Some(datum) = output.escrow() else {
                self.broken.push(Broken::OutputIsEscrow);
                continue;
            };
            self.require(is_long(&datum), Broken::ReferenceIsLong);
            self.require(seen.insert(datum.reference_signature.clone()), Broken::OutputsDiffer);
            if datum.reference_signature == self.datum.reference_signature {
                continuation.get_or_insert((datum, output.value.clone()));
            }
        }
        continuation
    }

    /// Returns the rule that is broken if the table has no row for this action: the state alone forbids the action, or
    /// the result hash contradicts the state.
    fn missing_row(&self, action: Action) -> Broken {
        let with = |result_hash| Datum { result_hash, ..self.datum.clone() };
        let fits = [vec![], vec![1]].into_iter().any(|result| Rule::find(action, &with(result)).is_some());
        if action == Action::SetRefundRequested && fits { Broken::StateFitsResult } else { Broken::State }
    }

    fn continuation(&mut self, rule: &Rule, (datum, value): &(Datum, Value), now: Millis) {
        let follows = rule.continues(&self.datum, datum, now, self.parameters.cooldown_period);
        self.require(follows, Broken::TermsFollow);
        let held = &self.spent.value;
        self.require(value.lovelace >= held.lovelace && value.assets == held.assets, Broken::ValueKept);
    }

    fn payout(&mut self, payout: PayoutRule, redeemer: &Redeemer) {
        let to_buyer = self.tagged(self.datum.buyer_payout_address());
        let to_seller = self.tagged(self.datum.seller_payout_address());
        let (whole, collateral) = (&self.spent.value, self.datum.collateral_return);
        match payout {
            PayoutRule::SellerCollects => {
                let rest = Value { lovelace: whole.lovelace.saturating_sub(collateral), assets: whole.assets.clone() };
                let bound = self.datum.seller_return_address.is_some();
                self.require(to_buyer.lovelace >= collateral, Broken::CollateralReturned);
                self.require(!bound || covers(&to_seller, &rest), Broken::SellerPaid);
            }
            PayoutRule::BuyerRefunded => {
                let bound = self.datum.buyer_return_address.is_some();
                self.require(!bound || covers(&to_buyer, whole), Broken::BuyerPaid);
            }
            PayoutRule::AsSigned => self.award(redeemer, &to_buyer, &to_seller),
        }
    }

    fn award(&mut self, redeemer: &Redeemer, to_buyer: &Value, to_seller: &Value) {
        let Redeemer::WithdrawDisputed { buyer_value, seller_value, admin_signatures } = redeemer else { return };
        self.require(is_value(buyer_value) && is_value(seller_value), Broken::SharesAreValues);
        self.require(ascends(buyer_value) && ascends(seller_value), Broken::PoliciesAscend);
        self.require(is_paid(to_buyer, buyer_value), Broken::BuyerShare);
        self.require(is_paid(to_seller, seller_value), Broken::SellerShare);
        let (buyer_value, seller_value) = (buyer_value.clone(), seller_value.clone());
        let decision = DisputeWithdrawal { own_ref: self.own, buyer_value, seller_value };
        let enough = block_on(admin::have_enough_votes(&Native, self.parameters, &decision, admin_signatures));
        self.require(enough, Broken::Votes);
    }

    /// Sums the value paid to an address in outputs tagged with this escrow's output reference.
    fn tagged(&self, to: PlutusAddress) -> Value {
        let tag = tag(self.own);
        let paid = self.transaction.outputs.iter().filter(|output| output.address == to && output.datum == tag);
        paid.fold(Value::default(), |mut sum, TxOut { value, .. }| {
            sum.lovelace = sum.lovelace.checked_add(value.lovelace).unwrap_or(Lovelace::MAX);
            for (asset, quantity) in &value.assets {
                *sum.assets.entry(asset.clone()).or_default() += quantity;
            }
            sum
        })
    }
}

fn is_long(datum: &Datum) -> bool {
    datum.reference_signature.len() >= MIN_REFERENCE_SIGNATURE_BYTES
}

fn covers(paid: &Value, due: &Value) -> bool {
    paid.lovelace >= due.lovelace
        && due.assets.iter().all(|(asset, quantity)| paid.assets.get(asset).is_some_and(|paid| paid >= quantity))
}

fn is_paid(paid: &Value, due: &AssetValue) -> bool {
    let mut assets = due.0.iter().flat_map(|(policy, names)| names.iter().map(move |(name, due)| (policy, name, due)));
    assets.all(|(policy, name, due)| match (&policy[..], &name[..]) {
        ([], []) => paid.lovelace.get() >= *due,
        _ => paid.assets.get(&(hex::encode(policy) + &hex::encode(name))).unwrap_or(&0) >= due,
    })
}

/// Returns `true` if no policy is repeated or empty, names are strictly ascending, and no quantity is zero.
fn is_value(value: &AssetValue) -> bool {
    let policies: HashSet<_> = value.0.iter().map(|(policy, _)| policy).collect();
    policies.len() == value.0.len()
        && value.0.iter().all(|(_, names)| {
            !names.is_empty()
                && names.is_sorted_by(|(a, _), (b, _)| a < b)
                && names.iter().all(|(_, quantity)| *quantity > 0)
        })
}

/// Returns `true` if policies are in ascending order. Repetitions are allowed, because [`is_value`] reports them.
fn ascends(value: &AssetValue) -> bool {
    value.0.is_sorted_by(|(a, _), (b, _)| a <= b)
}
