//! The rules of the escrow over whole transactions, as a pure function. Who may act, from which state and when is
//! the table of [`escrow::rules`]; this adds what the table leaves to the outputs: batches, values, payouts, votes.
//!
//! Every violated rule is reported, not only the first: a case that violates exactly one shows that the contract
//! enforces that one.

use std::collections::HashSet;

use cardano::{TxRef, slots::Millis};
use escrow::{
    Action, Credential, Datum, Parameters, PlutusAddress, Redeemer,
    datum::MIN_REFERENCE_SIGNATURE_BYTES,
    rules::{Effect, PayoutRule, Rule, Window},
};

use super::{
    transaction::{Attached, Handed, Input, Transaction, Value},
    votes,
};

/// A rule that a transaction breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broken {
    /// The spent output has a datum of the type.
    SpentIsEscrow,
    /// The redeemer is one of the actions.
    RedeemerIsAction,
    /// The party who acts has a key.
    ActorHasKey,
    /// The party who does not act has a key, too. Stricter than the published validator.
    OtherPartyHasKey,
    /// A reference signature has at least 16 bytes.
    ReferenceIsLong,
    /// The transaction's validity ends.
    Bounded,
    /// No two script inputs have one reference signature.
    InputsDiffer,
    /// No escrow by datum hash is spent beside another. Stricter than the published validator.
    HashedAlone,
    /// An output at the script's address is an escrow, in place.
    OutputIsEscrow,
    /// An output at the script's address carries no script.
    OutputHasNoScript,
    /// No two script outputs have one reference signature.
    OutputsDiffer,
    /// The action is possible in this state with this result.
    State,
    /// A refund is requested where state and result agree. Stricter than the published validator.
    StateFitsResult,
    /// The actor signed.
    Signed,
    /// Not before the opening moment.
    NotEarly,
    /// Not after the closing moment.
    NotLate,
    /// At least the collateral is locked.
    CollateralLocked,
    /// The escrow goes on.
    Continues,
    /// The escrow goes on with the terms that follow from the action.
    TermsFollow,
    /// The escrow goes on with its value, and nothing but lovelace is added.
    ValueKept,
    /// The escrow ends.
    Ends,
    /// The buyer gets the collateral.
    CollateralReturned,
    /// The seller's return address gets the rest.
    SellerPaid,
    /// The buyer's return address gets everything.
    BuyerPaid,
    /// The buyer gets what the admins signed.
    BuyerShare,
    /// The seller gets what the admins signed.
    SellerShare,
    /// Signed values have no repetition, no zero, and their names ascend.
    SharesAreValues,
    /// Signed values have ascending policies. Stricter than the published validator.
    PoliciesAscend,
    /// The threshold is positive and can be reached.
    ThresholdReachable,
    /// No more signatures than admins.
    FewSignatures,
    /// Protected headers have at most 256 bytes.
    ShortHeaders,
    /// Signatures of admins have 64 bytes.
    SignatureSize,
    /// Enough votes.
    Votes,
}

impl Broken {
    /// Every rule.
    pub const ALL: &[Self] = &[
        Self::SpentIsEscrow,
        Self::RedeemerIsAction,
        Self::ActorHasKey,
        Self::OtherPartyHasKey,
        Self::ReferenceIsLong,
        Self::Bounded,
        Self::InputsDiffer,
        Self::HashedAlone,
        Self::OutputIsEscrow,
        Self::OutputHasNoScript,
        Self::OutputsDiffer,
        Self::State,
        Self::StateFitsResult,
        Self::Signed,
        Self::NotEarly,
        Self::NotLate,
        Self::CollateralLocked,
        Self::Continues,
        Self::TermsFollow,
        Self::ValueKept,
        Self::Ends,
        Self::CollateralReturned,
        Self::SellerPaid,
        Self::BuyerPaid,
        Self::BuyerShare,
        Self::SellerShare,
        Self::SharesAreValues,
        Self::PoliciesAscend,
        Self::ThresholdReachable,
        Self::FewSignatures,
        Self::ShortHeaders,
        Self::SignatureSize,
        Self::Votes,
    ];

    /// Whether only our contract promises this. Another one with the interface may do without.
    #[must_use]
    pub const fn is_ours_alone(self) -> bool {
        matches!(self, Self::OtherPartyHasKey | Self::StateFitsResult | Self::HashedAlone | Self::PoliciesAscend)
    }
}

/// The rules that a transaction breaks, over all escrows that it spends; empty if the contract must accept it.
#[must_use]
pub fn broken(parameters: &Parameters, transaction: &Transaction) -> Vec<Broken> {
    let spends = transaction.inputs.iter().filter_map(|input| Some((input, input.handed.as_ref()?)));
    let mut broken: Vec<_> =
        spends.flat_map(|(input, handed)| Spend::judge(parameters, transaction, input, handed)).collect();
    broken.sort_unstable();
    broken.dedup();
    broken
}

struct Spend<'a> {
    parameters: &'a Parameters,
    transaction: &'a Transaction,
    own: TxRef,
    value: &'a Value,
    datum: &'a Datum,
    /// Continuations by reference signature.
    continuations: Vec<(&'a Datum, &'a Value)>,
    broken: Vec<Broken>,
}

impl<'a> Spend<'a> {
    fn judge(
        parameters: &'a Parameters,
        transaction: &'a Transaction,
        input: &'a Input,
        handed: &'a Handed,
    ) -> Vec<Broken> {
        let script = input.output.address;
        let Some(datum) = input.output.attached.escrow() else { return vec![Broken::SpentIsEscrow] };
        let Handed::Action(redeemer) = handed else { return vec![Broken::RedeemerIsAction] };
        let Some(now) = transaction.now() else { return vec![Broken::Bounded] };
        let mut spend = Self {
            parameters,
            transaction,
            own: input.reference,
            value: &input.output.value,
            datum,
            continuations: vec![],
            broken: vec![],
        };
        spend.require(datum.reference_signature.len() >= MIN_REFERENCE_SIGNATURE_BYTES, Broken::ReferenceIsLong);
        spend.parties(redeemer.action());
        spend.inputs(script);
        spend.outputs(script);
        spend.action(redeemer, now);
        spend.broken
    }

    fn require(&mut self, holds: bool, rule: Broken) {
        if !holds {
            self.broken.push(rule);
        }
    }

    fn parties(&mut self, action: Action) {
        let is_key = |party: &PlutusAddress| matches!(party.payment, Credential::Key(_));
        let actor = Rule::find(action, self.datum).map(|rule| rule.signer(self.datum));
        let actor_fits = !matches!(actor, Some(Err(_)));
        self.require(actor_fits, Broken::ActorHasKey);
        let all_fit = is_key(&self.datum.buyer) && is_key(&self.datum.seller);
        self.require(all_fit || !actor_fits, Broken::OtherPartyHasKey);
    }

    fn inputs(&mut self, script: PlutusAddress) {
        let others = self.transaction.inputs.iter().filter(|input| input.output.address == script);
        let others: Vec<_> = others.map(|input| (&input.output.attached, input.reference == self.own)).collect();
        let hashed_beside =
            others.len() > 1 && others.iter().any(|(attached, _)| matches!(attached, Attached::HashedEscrow(_)));
        self.require(!hashed_beside, Broken::HashedAlone);
        let mut seen = HashSet::new();
        let in_place = others.iter().filter_map(|(attached, _)| match attached {
            Attached::Escrow(datum) => Some(&datum.reference_signature),
            _ => None,
        });
        let differ = in_place.into_iter().all(|signature| seen.insert(signature));
        self.require(differ, Broken::InputsDiffer);
    }

    fn outputs(&mut self, script: PlutusAddress) {
        let mut seen = HashSet::new();
        for output in self.transaction.outputs.iter().filter(|output| output.address == script) {
            self.require(!output.has_script, Broken::OutputHasNoScript);
            let Attached::Escrow(datum) = &output.attached else {
                self.broken.push(Broken::OutputIsEscrow);
                continue;
            };
            let long = datum.reference_signature.len() >= MIN_REFERENCE_SIGNATURE_BYTES;
            self.require(long, Broken::ReferenceIsLong);
            self.require(seen.insert(&datum.reference_signature), Broken::OutputsDiffer);
            if datum.reference_signature == self.datum.reference_signature {
                self.continuations.push((datum, &output.value));
            }
        }
    }

    fn action(&mut self, redeemer: &Redeemer, now: Millis) {
        let Some(rule) = Rule::find(redeemer.action(), self.datum) else {
            self.broken.push(self.missing_row(redeemer.action()));
            return;
        };
        if let Ok(Some(signer)) = rule.signer(self.datum) {
            self.require(self.transaction.signers.contains(&signer), Broken::Signed);
        }
        let Window { opens, closes } = rule.window(self.datum);
        let open = rule.starts.is_empty() || self.transaction.validity.from.is_some_and(|from| from >= opens);
        self.require(open, Broken::NotEarly);
        self.require(closes.is_none_or(|closes| now < closes), Broken::NotLate);
        if matches!(rule.action, Action::Withdraw | Action::SubmitResult) {
            let collateral = self.datum.collateral_return.get();
            self.require(self.value.lovelace >= collateral, Broken::CollateralLocked);
        }
        match rule.effect {
            Effect::Continue { .. } => self.continuation(rule, now),
            Effect::End(payout) => self.payout(payout, redeemer),
        }
    }

    /// Why the table has no row: the state, or a result that only the state's name denies.
    fn missing_row(&self, action: Action) -> Broken {
        let with = |result_hash| Datum { result_hash, ..self.datum.clone() };
        let fits = [vec![], vec![1]].into_iter().any(|result| Rule::find(action, &with(result)).is_some());
        match (action, fits) {
            (Action::SetRefundRequested, true) => Broken::StateFitsResult,
            _ => Broken::State,
        }
    }

    fn continuation(&mut self, rule: &Rule, now: Millis) {
        let Some((datum, value)) = self.continuations.first().copied() else {
            self.broken.push(Broken::Continues);
            return;
        };
        let follows = rule.continues(self.datum, datum, now, self.parameters.cooldown_period);
        self.require(follows, Broken::TermsFollow);
        let kept = value.lovelace >= self.value.lovelace && value.tokens == self.value.tokens;
        self.require(kept, Broken::ValueKept);
    }

    fn payout(&mut self, payout: PayoutRule, redeemer: &Redeemer) {
        self.require(self.continuations.is_empty(), Broken::Ends);
        let paid = |to| self.transaction.tagged(self.own, to);
        let to_buyer = paid(self.datum.buyer_payout_address());
        let to_seller = paid(self.datum.seller_payout_address());
        let collateral = self.datum.collateral_return.get();
        match payout {
            PayoutRule::SellerCollects => {
                self.require(to_buyer.lovelace >= collateral, Broken::CollateralReturned);
                let lovelace = self.value.lovelace.saturating_sub(collateral);
                let rest = Value { lovelace, tokens: self.value.tokens.clone() };
                let bound = self.datum.seller_return_address.is_some();
                self.require(!bound || covers(&to_seller, &rest), Broken::SellerPaid);
            }
            PayoutRule::BuyerRefunded => {
                let bound = self.datum.buyer_return_address.is_some();
                self.require(!bound || covers(&to_buyer, self.value), Broken::BuyerPaid);
            }
            PayoutRule::AsSigned => {
                for rule in votes::broken(self.parameters, self.own, redeemer, &to_buyer, &to_seller) {
                    self.broken.push(rule);
                }
            }
        }
    }
}

fn covers(paid: &Value, due: &Value) -> bool {
    paid.lovelace >= due.lovelace
        && due.tokens.iter().all(|(asset, quantity)| paid.tokens.get(asset).is_some_and(|paid| paid >= quantity))
}
