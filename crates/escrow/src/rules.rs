//! The contract's rules as one table: who may do what, from which state, when, and the escrow afterwards.
//!
//! The planner builds transactions from it, and the tests hold every compiled contract against it. When an
//! action is possible is a [`Window`].

use cardano::{ContentHash, KeyHash, Lovelace, address::Credential, slots::Millis};

use crate::{
    datum::{Datum, MIN_REFERENCE_SIGNATURE_BYTES, State},
    redeemer::Action,
};

mod window;

pub use window::{Timing, Window};

use State::{Disputed, FundsLocked, RefundAuthorized, RefundRequested, ResultSubmitted, WithdrawAuthorized};

/// Whose signature an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The key of the datum's buyer signs the transaction.
    Buyer,
    /// The key of the datum's seller signs the transaction.
    Seller,
    /// Enough arbiters signed the payouts; anyone may send the transaction.
    Arbiters,
}

/// A time in the datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatumTime {
    /// `seller_cooldown_time`.
    SellerCooldown,
    /// `buyer_cooldown_time`.
    BuyerCooldown,
    /// `submit_result_time`.
    SubmitResult,
    /// `unlock_time`.
    Unlock,
    /// `external_dispute_unlock_time`.
    ExternalDisputeUnlock,
}

/// What an action needs to find in `result_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultIs {
    /// No result.
    Empty,
    /// A result.
    Present,
    /// Either.
    Any,
}

/// The escrow afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It goes on, with at least its value: the actor's cooldown starts anew, the other's is lifted.
    Continue {
        /// In this state.
        to: State,
        /// With this result.
        result: ResultChange,
    },
    /// It ends, and the money is paid out.
    End(PayoutRule),
}

/// What an action that goes on does to `result_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultChange {
    /// Stays.
    Keep,
    /// Becomes a result that is not empty.
    Set,
    /// Becomes empty.
    Clear,
}

/// Which tagged outputs an action that ends the escrow must make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayoutRule {
    /// The buyer gets the collateral; the rest is the seller's, tagged if the datum names a return address.
    SellerCollects,
    /// All is the buyer's, tagged if the datum names a return address.
    BuyerRefunded,
    /// Both get, tagged, at least what the arbiters signed.
    AsSigned,
}

/// One row: what must hold, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The redeemer.
    pub action: Action,
    /// Who signs.
    pub by: Party,
    /// From which states.
    pub from: &'static [State],
    /// With which result.
    pub result: ResultIs,
    /// The transaction is valid from all of these on, at the earliest. Where any is named it needs a lower bound.
    pub starts: &'static [DatumTime],
    /// The transaction's validity ends before the latest of these.
    pub ends: &'static [DatumTime],
    /// What follows.
    pub effect: Effect,
}

const fn to(state: State, result: ResultChange) -> Effect {
    Effect::Continue { to: state, result }
}

#[rustfmt::skip]
mod table {
    use super::{Action, DatumTime, Disputed, Effect, FundsLocked, Party, PayoutRule, RefundAuthorized, RefundRequested};
    use super::{ResultChange, ResultIs, ResultSubmitted, Rule, WithdrawAuthorized, to};

    /// The table in `contracts/README.md`; README of `smart-contracts/payment-v2` (masumi-network/masumi-payment-service).
    /// No two rows fit one escrow and one action; where no row fits, the contract refuses. (A refund request finds a
    /// result exactly where the state says that there is one: only a forged lock could differ.)
    pub const RULES: &[Rule] = &[
        Rule { action: Action::SubmitResult, by: Party::Seller, from: &[FundsLocked, ResultSubmitted], result: ResultIs::Empty,
               starts: &[DatumTime::SellerCooldown], ends: &[DatumTime::SubmitResult],
               effect: to(ResultSubmitted, ResultChange::Set) },
        Rule { action: Action::SubmitResult, by: Party::Seller, from: &[FundsLocked, ResultSubmitted], result: ResultIs::Present,
               starts: &[DatumTime::SellerCooldown], ends: &[DatumTime::SubmitResult, DatumTime::ExternalDisputeUnlock],
               effect: to(ResultSubmitted, ResultChange::Set) },
        Rule { action: Action::SubmitResult, by: Party::Seller, from: &[RefundRequested, Disputed], result: ResultIs::Empty,
               starts: &[DatumTime::SellerCooldown], ends: &[DatumTime::SubmitResult],
               effect: to(Disputed, ResultChange::Set) },
        Rule { action: Action::SubmitResult, by: Party::Seller, from: &[RefundRequested, Disputed], result: ResultIs::Present,
               starts: &[DatumTime::SellerCooldown], ends: &[DatumTime::SubmitResult, DatumTime::ExternalDisputeUnlock],
               effect: to(Disputed, ResultChange::Set) },

        Rule { action: Action::SetRefundRequested, by: Party::Buyer, from: &[FundsLocked], result: ResultIs::Empty,
               starts: &[DatumTime::BuyerCooldown], ends: &[DatumTime::Unlock],
               effect: to(RefundRequested, ResultChange::Keep) },
        Rule { action: Action::SetRefundRequested, by: Party::Buyer, from: &[ResultSubmitted, Disputed], result: ResultIs::Present,
               starts: &[DatumTime::BuyerCooldown], ends: &[DatumTime::Unlock],
               effect: to(Disputed, ResultChange::Keep) },

        Rule { action: Action::AuthorizeWithdrawal, by: Party::Buyer, from: &[Disputed], result: ResultIs::Present,
               starts: &[DatumTime::BuyerCooldown], ends: &[],
               effect: to(WithdrawAuthorized, ResultChange::Keep) },

        Rule { action: Action::AuthorizeRefund, by: Party::Seller, from: &[FundsLocked, ResultSubmitted, RefundRequested, Disputed], result: ResultIs::Any,
               starts: &[DatumTime::SellerCooldown], ends: &[],
               effect: to(RefundAuthorized, ResultChange::Clear) },

        Rule { action: Action::Withdraw, by: Party::Seller, from: &[ResultSubmitted], result: ResultIs::Present,
               starts: &[DatumTime::Unlock], ends: &[],
               effect: Effect::End(PayoutRule::SellerCollects) },
        Rule { action: Action::Withdraw, by: Party::Seller, from: &[WithdrawAuthorized], result: ResultIs::Present,
               starts: &[], ends: &[],
               effect: Effect::End(PayoutRule::SellerCollects) },

        Rule { action: Action::WithdrawRefund, by: Party::Buyer, from: &[FundsLocked, RefundRequested], result: ResultIs::Empty,
               starts: &[DatumTime::SubmitResult], ends: &[],
               effect: Effect::End(PayoutRule::BuyerRefunded) },
        Rule { action: Action::WithdrawRefund, by: Party::Buyer, from: &[RefundAuthorized], result: ResultIs::Empty,
               starts: &[], ends: &[],
               effect: Effect::End(PayoutRule::BuyerRefunded) },

        Rule { action: Action::WithdrawDisputed, by: Party::Arbiters, from: &[Disputed], result: ResultIs::Present,
               starts: &[DatumTime::ExternalDisputeUnlock], ends: &[],
               effect: Effect::End(PayoutRule::AsSigned) },
    ];
}

pub use table::RULES;

/// The times between which a transaction is valid, as the contract sees them, POSIX ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityRange {
    /// Valid from this time on; `None` without a lower bound.
    pub from: Option<Millis>,
    /// Valid before this time; `None` without an upper bound. "Now" to the contract.
    pub until: Option<Millis>,
}

/// Why the contract would refuse an action whatever the transaction's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractRefusal {
    /// No rule for this action in this state with this result.
    #[error("not possible in this state")]
    State,
    /// The party's address is a script's, which cannot sign.
    #[error("the party is no key")]
    NoKey,
    /// The key that must sign did not.
    #[error("not signed by the party")]
    NotSigned,
    /// No upper bound, or a lower bound is needed.
    #[error("the validity interval is open")]
    Unbounded,
    /// The interval starts before this time.
    #[error("too early: possible from {0} on")]
    TooEarly(Millis),
    /// The interval ends at or after this time.
    #[error("too late: possible before {0}")]
    TooLate(Millis),
    /// The reference signature has fewer than 16 bytes.
    #[error("the reference signature is too short: this escrow can never be spent")]
    ReferenceSignature,
    /// Fewer lovelace are locked than are due to the buyer as collateral.
    #[error("less is locked than the collateral")]
    Collateral,
}

impl DatumTime {
    /// When it is for this escrow.
    #[must_use]
    pub const fn of(self, datum: &Datum) -> Millis {
        match self {
            Self::SellerCooldown => datum.seller_cooldown,
            Self::BuyerCooldown => datum.buyer_cooldown,
            Self::SubmitResult => datum.deadlines.submit_result,
            Self::Unlock => datum.deadlines.unlock,
            Self::ExternalDisputeUnlock => datum.deadlines.external_dispute_unlock,
        }
    }
}

impl ResultIs {
    const fn fits(self, has_result: bool) -> bool {
        match self {
            Self::Empty => !has_result,
            Self::Present => has_result,
            Self::Any => true,
        }
    }
}

impl Rule {
    /// The row for this action on this escrow.
    #[must_use]
    pub fn find(action: Action, datum: &Datum) -> Option<&'static Self> {
        let fits = |rule: &&Self| {
            rule.action == action && rule.from.contains(&datum.state) && rule.result.fits(datum.has_result())
        };
        RULES.iter().find(fits)
    }

    /// When the contract permits the action on this escrow as it is now.
    #[must_use]
    pub fn window(&self, datum: &Datum) -> Window {
        let latest = |times: &[DatumTime]| times.iter().map(|time| time.of(datum)).max();
        Window { opens: latest(self.starts).unwrap_or(0), closes: latest(self.ends) }
    }

    /// The key that signs; `None` where arbiters do.
    ///
    /// # Errors
    /// [`ContractRefusal::NoKey`] where the party is a script.
    pub fn signer(&self, datum: &Datum) -> Result<Option<KeyHash>, ContractRefusal> {
        let party = match self.by {
            Party::Buyer => datum.buyer,
            Party::Seller => datum.seller,
            Party::Arbiters => return Ok(None),
        };
        match party.payment {
            Credential::Key(key) => Ok(Some(key)),
            Credential::Script(_) => Err(ContractRefusal::NoKey),
        }
    }

    /// The rule under which the contract permits this, as far as it does not depend on the outputs.
    ///
    /// # Errors
    /// Why the contract refuses: the first reason.
    pub fn permit(
        action: Action,
        datum: &Datum,
        locked: Lovelace,
        validity: ValidityRange,
        signatories: &[KeyHash],
    ) -> Result<&'static Self, ContractRefusal> {
        if datum.reference_signature.len() < MIN_REFERENCE_SIGNATURE_BYTES {
            return Err(ContractRefusal::ReferenceSignature);
        }
        let rule = Self::find(action, datum).ok_or(ContractRefusal::State)?;
        match rule.refusals(datum, locked, validity, signatories).next() {
            Some(refusal) => Err(refusal),
            None => Ok(rule),
        }
    }

    /// Every reason for which the contract refuses this rule's action, as far as it does not depend on the outputs.
    pub fn refusals(
        &self,
        datum: &Datum,
        locked: Lovelace,
        validity: ValidityRange,
        signatories: &[KeyHash],
    ) -> impl Iterator<Item = ContractRefusal> + use<> {
        let needs_collateral = matches!(self.action, Action::Withdraw | Action::SubmitResult);
        let collateral = (needs_collateral && locked < datum.collateral_return).then_some(ContractRefusal::Collateral);
        let signer = match self.signer(datum) {
            Ok(Some(key)) if !signatories.contains(&key) => Some(ContractRefusal::NotSigned),
            Ok(_) => None,
            Err(refusal) => Some(refusal),
        };
        let window = self.window(datum);
        let early = match validity.from {
            _ if self.starts.is_empty() => None,
            None => Some(ContractRefusal::Unbounded),
            Some(from) => (from < window.opens).then_some(ContractRefusal::TooEarly(window.opens)),
        };
        let late = match (validity.until, window.closes) {
            (None, _) => Some(ContractRefusal::Unbounded),
            (Some(until), Some(closes)) if until >= closes => Some(ContractRefusal::TooLate(closes)),
            _ => None,
        };
        [collateral, signer, early, late].into_iter().flatten()
    }

    /// The escrow after this action, in a transaction valid until `now`; `None` where the action ends it, or a result
    /// is missing. `result` is looked at where the action sets one.
    #[must_use]
    pub fn next(&self, datum: &Datum, now: Millis, period: Millis, result: Option<&ContentHash>) -> Option<Datum> {
        let Effect::Continue { to, result: change } = self.effect else { return None };
        let cooldown = now.checked_add(period)?;
        let result_hash = match change {
            ResultChange::Keep => datum.result_hash.clone(),
            ResultChange::Set => result?.as_bytes().to_vec(),
            ResultChange::Clear => vec![],
        };
        let (seller_cooldown, buyer_cooldown) = if self.by == Party::Seller { (cooldown, 0) } else { (0, cooldown) };
        Some(Datum { state: to, result_hash, seller_cooldown, buyer_cooldown, ..datum.clone() })
    }

    /// Whether the contract takes `new` for the continuation of `old` under this rule.
    #[must_use]
    pub fn continues(&self, old: &Datum, new: &Datum, now: Millis, period: Millis) -> bool {
        let Effect::Continue { result, .. } = self.effect else { return false };
        let Some(cooldown) = now.checked_add(period) else { return false };
        let posted = ContentHash::new([0; 32]);
        let Some(expected) = self.next(old, now, period, Some(&posted)) else { return false };
        let (own, other) = match self.by {
            Party::Seller => (new.seller_cooldown, new.buyer_cooldown),
            _ => (new.buyer_cooldown, new.seller_cooldown),
        };
        let result_fits = match result {
            ResultChange::Set => new.has_result(),
            ResultChange::Keep | ResultChange::Clear => new.result_hash == expected.result_hash,
        };
        let free =
            |datum: &Datum| Datum { result_hash: vec![], seller_cooldown: 0, buyer_cooldown: 0, ..datum.clone() };
        own >= cooldown && other == 0 && result_fits && free(new) == free(&expected)
    }
}

#[cfg(test)]
mod tests;
