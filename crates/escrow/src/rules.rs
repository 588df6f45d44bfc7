//! The contract's rules as one table: which party may take which action, in which states, when, and what becomes of the
//! escrow.
//!
//! The planner follows this table, and the tests hold the compiled contract against it. [`Window`] says when an action
//! is possible.

use cardano::{ContentHash, KeyHash, Lovelace, address::Credential, slots::Millis};

use crate::{
    datum::{Datum, MIN_REFERENCE_SIGNATURE_BYTES, State},
    redeemer::Action,
};

mod window;

pub use window::{Timing, Window};

use State::{Disputed, FundsLocked, RefundAuthorized, RefundRequested, ResultSubmitted, WithdrawAuthorized};

/// The party whose signature an action requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The holder of the datum's buyer key, who must sign the transaction.
    Buyer,
    /// The holder of the datum's seller key, who must sign the transaction.
    Seller,
    /// The arbiters. Enough of them must have signed the award; anyone may submit the transaction.
    Arbiters,
}

/// A time field of the datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatumTime {
    /// The seller's cooldown, the datum's field `seller_cooldown_time`.
    SellerCooldown,
    /// The buyer's cooldown, the datum's field `buyer_cooldown_time`.
    BuyerCooldown,
    /// The deadline for the result, the datum's field `submit_result_time`.
    SubmitResult,
    /// The time from which the seller may collect, the datum's field `unlock_time`.
    Unlock,
    /// The time from which arbiters may settle a dispute, the datum's field `external_dispute_unlock_time`.
    ExternalDisputeUnlock,
}

/// Requirement of an action on the datum's `result_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultIs {
    /// `result_hash` must be empty.
    Empty,
    /// `result_hash` must not be empty.
    Present,
    /// `result_hash` may be empty or not.
    Any,
}

/// Effect of an action on the escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The escrow continues in a new output with at least the same value. The acting party's cooldown starts again and
    /// the other party's is reset.
    Continue {
        /// State of the escrow after the action.
        to: State,
        /// Change of the datum's `result_hash`.
        result: ResultChange,
    },
    /// The escrow ends and its money is paid out.
    End(PayoutRule),
}

/// Effect of an action on the datum's `result_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultChange {
    /// `result_hash` stays unchanged.
    Keep,
    /// `result_hash` is set to a non-empty hash.
    Set,
    /// `result_hash` is cleared.
    Clear,
}

/// Payouts that an action must make when it ends the escrow. A *tagged* output carries the escrow's output reference as
/// its inline datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayoutRule {
    /// The buyer gets the collateral and the seller the rest. If the datum names a return address of the seller, the
    /// rest must go there in an output that names the escrow (a *tagged* output).
    SellerCollects,
    /// The buyer gets everything. If the datum names a return address of the buyer, everything must go there in an
    /// output that names the escrow (a *tagged* output).
    BuyerRefunded,
    /// Each party gets at least the share that the arbiters signed, in outputs that name the escrow (*tagged* outputs).
    AsSigned,
}

/// A row of the table: an action, the conditions under which the contract permits it, and its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Action that this row permits.
    pub action: Action,
    /// Party whose signature the action requires.
    pub by: Party,
    /// States of the escrow in which the action is possible.
    pub from: &'static [State],
    /// Requirement on the datum's `result_hash`.
    pub result: ResultIs,
    /// Times of the datum that must all have been reached when the transaction's validity interval begins. If the list
    /// is not empty, the interval needs a lower bound.
    pub starts: &'static [DatumTime],
    /// Deadlines in the datum. The transaction's validity interval must end before the latest of them. If the list is
    /// empty, the interval may end at any time.
    pub ends: &'static [DatumTime],
    /// Effect of the action on the escrow.
    pub effect: Effect,
}

const fn to(state: State, result: ResultChange) -> Effect {
    Effect::Continue { to: state, result }
}

#[rustfmt::skip]
mod table {
    use super::{Action, DatumTime, Disputed, Effect, FundsLocked, Party, PayoutRule, RefundAuthorized, RefundRequested};
    use super::{ResultChange, ResultIs, ResultSubmitted, Rule, WithdrawAuthorized, to};

    /// Every rule of the contract: the same table as in `contracts/README.md`, from the README of
    /// `smart-contracts/payment-v2` (masumi-network/masumi-payment-service).
    ///
    /// At most one row matches an escrow and an action. If none does, the contract rejects the action. The rows for
    /// refund requests also require the result hash that an honest escrow has in the state, because the result hash of
    /// a forged lock may contradict its state.
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

/// A transaction's validity interval as the contract sees it, in POSIX milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidityRange {
    /// Start of the validity interval, inclusive; `None` if it has no lower bound.
    pub from: Option<Millis>,
    /// End of the validity interval, exclusive; `None` if it has no upper bound. The contract takes this end as the
    /// current time.
    pub until: Option<Millis>,
}

/// Reason why the contract would reject an action, regardless of the transaction's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractRefusal {
    /// No rule allows this action, given the escrow's state and whether it has a result hash.
    #[error("not possible in this state")]
    State,
    /// The address of the party that must sign has a script credential, which cannot sign.
    #[error("the party's address is a script, which cannot sign")]
    NoKey,
    /// The party that must sign has not signed.
    #[error("not signed by the party")]
    NotSigned,
    /// The validity interval has no upper bound, or lacks the lower bound that this action needs.
    #[error("the validity interval lacks a bound")]
    Unbounded,
    /// The validity interval starts before this time, in POSIX milliseconds.
    #[error("too early: possible from {0} on")]
    TooEarly(Millis),
    /// The validity interval does not end before this time, in POSIX milliseconds.
    #[error("too late: possible before {0}")]
    TooLate(Millis),
    /// The reference signature is shorter than 16 bytes, so the escrow can never be spent.
    #[error("the reference signature is too short: this escrow can never be spent")]
    ReferenceSignature,
    /// Less lovelace is locked than the buyer's collateral.
    #[error("less is locked than the collateral")]
    Collateral,
}

impl DatumTime {
    /// Returns the value of this time field in a datum, in POSIX milliseconds.
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
    /// Returns the rule for an action on the escrow with this datum, or `None` if the contract does not permit the
    /// action.
    #[must_use]
    pub fn find(action: Action, datum: &Datum) -> Option<&'static Self> {
        let fits = |rule: &&Self| {
            rule.action == action && rule.from.contains(&datum.state) && rule.result.fits(datum.has_result())
        };
        RULES.iter().find(fits)
    }

    /// Returns the time window in which the contract permits the rule's action, provided that the escrow does not
    /// change.
    #[must_use]
    pub fn window(&self, datum: &Datum) -> Window {
        let latest = |times: &[DatumTime]| times.iter().map(|time| time.of(datum)).max();
        Window { opens: latest(self.starts).unwrap_or(0), closes: latest(self.ends) }
    }

    /// Returns the hash of the key that must sign the transaction, or `None` for arbiters, who sign the award instead.
    ///
    /// # Errors
    /// [`ContractRefusal::NoKey`] if the party's address is a script's.
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

    /// Returns the rule under which the contract permits an action. Checks every condition except the transaction's
    /// outputs.
    ///
    /// # Errors
    /// Returns the first reason why the contract rejects the action.
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

    /// Returns every reason why the contract rejects this rule's action; empty if there is none. Checks every condition
    /// except the transaction's outputs.
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

    /// Returns the escrow's datum after this rule's action. `now` is the end of the transaction's validity interval in
    /// POSIX milliseconds, and `period` the cooldown in milliseconds. `result` is used only by actions that set a
    /// result hash. Returns `None` if the action ends the escrow, or if it needs a `result` and there is none.
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

    /// Returns `true` if the contract accepts that an escrow with the datum `old` continues with the datum `new` under
    /// this rule. `now` is the end of the transaction's validity interval in POSIX milliseconds, and `period` the
    /// cooldown in milliseconds.
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
