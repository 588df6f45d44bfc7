//! Drafts payments for external wallets, using each wallet's own description of its outputs.
//!
//! Nothing is looked up or stored. The signed transaction is presented and verified like any other payment.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use api_types::PaymentSummary;
use cardano::{
    Address, KeyHash, Lovelace, TxRef,
    chain::{Utxo, Value},
    params::ProtocolParameters,
    slots::Millis,
    tx::build::{BuildError, TxPlan, UnsignedTx, Validity, Wallet, build},
};
use escrow::Deadlines;
use x402_cardano::{
    exact::{MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS},
    method::{CannotPay, OfferError, Offered, PaymentMethod, PaymentOutput},
    request_commitment::Commitment,
    wire::MAX_TIMEOUT_SECONDS,
};

use super::{PaymentOption, method_of};
use crate::{
    catalogue::ListingTerms,
    cip30::{Cip30Wallet, MAX_SPENT, change_words, key_of, largest_few, lovelace_of, quantities, span, total_of},
    listing::DeliveryMode,
};

/// Validity of a draft in seconds: `maxTimeoutSeconds` of the terms, minus a tolerance for differing clocks.
const VALID_SECONDS: u64 = MAX_TIMEOUT_SECONDS as u64 - 10;
/// Upper estimate of a payment's network fee plus its minimum change.
const FEE_AND_CHANGE: Lovelace = Lovelace::from_ada(2);

/// Parameters of a draft.
#[derive(Clone, Copy, Debug)]
pub struct DraftOrder<'a> {
    pub terms: &'a ListingTerms,
    pub mode: DeliveryMode,
    /// 32 random bytes for the quote.
    pub nonce: [u8; 32],
    /// Time from which the escrow's deadlines are computed, POSIX ms.
    pub clock: Millis,
    /// Request commitment for the transaction's metadata, if the payer computed one.
    pub commitment: Option<Commitment>,
}

/// An unsigned payment.
#[derive(Clone, Debug, PartialEq)]
pub struct PaymentDraft {
    pub tx: UnsignedTx,
    /// The accepted offer with the seller's signature.
    pub offered: Offered,
    /// The transaction input that identifies the payer.
    pub nonce: TxRef,
    pub summary: PaymentSummary,
    /// Description of the transaction for its signer.
    pub words: Vec<String>,
}

/// Reason why a payment cannot be drafted, worded for the API's client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaymentDraftError {
    /// The listing does not allow this mode, or no payment method is configured for it.
    #[error("mode: this listing does not offer {}", .0.as_str())]
    NotOffered(DeliveryMode),
    #[error("this is your own listing: you cannot pay yourself")]
    OwnListing,
    #[error("not enough tADA in the wallet: {} more is needed, for the price, the fee, and the change, which stays yours; send it to {wallet}", missing.display_tada())]
    Insufficient { missing: Lovelace, wallet: Address },
    /// The wallet holds enough, but in outputs that are too small or contain too many tokens.
    #[error(
        "the wallet's tADA are in too many small outputs (at most {MAX_SPENT}, of {MAX_INPUT_TRANSACTIONS} transactions, can pay) or beside too many tokens ({MAX_INPUT_TOKENS} in all): first send {} to yourself in one output, and pay when that is in a block", needed.display_tada()
    )]
    Scattered {
        /// Amount that the buyer should first combine into one output.
        needed: Lovelace,
    },
    #[error("utxos: {0}")]
    Build(BuildError),
    /// The configuration does not allow a quote.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The quote's output cannot be built.
    #[error(transparent)]
    CannotPay(CannotPay),
}

/// Drafts a payment.
///
/// # Errors
/// Returns the reason for a refusal, worded for the API's client.
pub fn draft(
    options: &[PaymentOption<'_>],
    order: &DraftOrder<'_>,
    wallet: &Cip30Wallet,
    parameters: &ProtocolParameters,
) -> Result<PaymentDraft, PaymentDraftError> {
    let DraftOrder { terms, mode, nonce, clock, .. } = *order;
    let method = method_of(options, terms, mode).ok_or(PaymentDraftError::NotOffered(mode))?;
    if wallet.keys().contains(terms.seller_address.payment_key()) {
        return Err(PaymentDraftError::OwnListing);
    }
    let offered = method.offer(&terms.sale(), clock, nonce)?;
    let drafting = Drafting { method, offered: &offered, order, wallet, parameters };
    let (tx, output, buyer) = drafting.cheapest()?;
    let (nonce, buyer) = drafting.payer(&tx, &buyer)?;
    let (facts, change) = (tx.facts(), total_of(&tx.facts().change));
    let valid_until = api_types::SLOTS.slot_begins_at(facts.valid_until_slot);
    let (price, locked) = (terms.price_lovelace, output.output.value.lovelace);
    let deadlines = offered.terms.as_ref().map(|terms| *terms.deadlines());
    let summary = PaymentSummary {
        mode,
        price_lovelace: price,
        pay_to: offered.requirements.pay_to.clone(),
        locked_lovelace: locked,
        collateral_lovelace: locked.saturating_sub(price),
        fee_lovelace: facts.fee,
        change_lovelace: change.lovelace,
        change_address: wallet.change,
        change_assets: quantities(&change),
        buyer_address: buyer,
        valid_until: valid_until.ok_or(PaymentDraftError::Build(BuildError::OutOfRange))?,
        deadlines: deadlines.map(Into::into),
    };
    let words = words(&summary, deadlines.as_ref(), &change, order);
    Ok(PaymentDraft { tx, offered, nonce, summary, words })
}

/// Describes the payment for its signer.
fn words(
    summary: &PaymentSummary,
    deadlines: Option<&Deadlines>,
    change: &Value,
    order: &DraftOrder<'_>,
) -> Vec<String> {
    let (price, now) = (summary.price_lovelace.display_tada(), order.clock);
    let mut words = match deadlines {
        None => vec![format!("You pay {price} to the seller, {}, directly.", summary.pay_to)],
        Some(deadlines) => protection(summary, deadlines, now),
    };
    words.push(format!("The network's fee is {}.", summary.fee_lovelace.display_tada()));
    words.extend(change_words(change, &summary.change_address));
    if order.commitment.is_some() {
        words.push("The transaction carries a digest of your request, which only you and the service can read.".into());
    }
    let left = span(summary.valid_until, now);
    words.push(format!("Sign and send it within {left}; after that it can no longer be used."));
    words
}

fn protection(summary: &PaymentSummary, deadlines: &Deadlines, now: Millis) -> Vec<String> {
    let (locked, collateral) = (summary.locked_lovelace.display_tada(), summary.collateral_lovelace);
    let mut words = vec![format!("You lock {locked} in the escrow contract {}.", summary.pay_to)];
    if collateral > Lovelace::ZERO {
        let collateral = collateral.display_tada();
        words.push(format!("{collateral} of it are collateral, which comes back to you however the sale ends."));
    }
    let [submit, unlock, dispute] =
        [deadlines.submit_result, deadlines.unlock, deadlines.external_dispute_unlock].map(|at| span(at, now));
    words.push(format!("If the seller posts no result within {submit}, you can take the money back."));
    words.push(format!("For {unlock} you can ask for a refund or dispute the result; after that the seller is paid."));
    words.push(format!("A dispute is settled by arbiters, in {dispute} at the earliest."));
    words
}

struct Drafting<'a> {
    method: &'a dyn PaymentMethod,
    offered: &'a Offered,
    order: &'a DraftOrder<'a>,
    wallet: &'a Cip30Wallet,
    parameters: &'a ProtocolParameters,
}

/// Payment keys that could pay together, with their outputs.
struct Payers<'a> {
    /// Owner of the purchase. At least one input must be the buyer's.
    buyer: Address,
    /// Output of the buyer that must be spent if other keys pay as well; `None` if any output of the buyer will do.
    first: Option<&'a Utxo>,
    utxos: Vec<&'a Utxo>,
}

impl<'a> Drafting<'a> {
    /// Builds a transaction that needs a single signature if possible: by the key of the change address, or else by the
    /// key with the largest amount. If neither suffices, all keys of the wallet pay together.
    fn cheapest(&self) -> Result<(UnsignedTx, PaymentOutput, Address), PaymentDraftError> {
        let mut candidates = self.candidates().into_iter();
        let mut payers = Payers { buyer: self.wallet.change, first: None, utxos: vec![] };
        loop {
            payers = candidates.next().unwrap_or(payers);
            match self.build(&payers) {
                Ok((tx, output)) => return Ok((tx, output, payers.buyer)),
                Err(error) if candidates.len() == 0 => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn candidates(&self) -> Vec<Payers<'a>> {
        let mut by_key: BTreeMap<KeyHash, Vec<&Utxo>> = BTreeMap::new();
        for utxo in &self.wallet.utxos {
            by_key.entry(key_of(utxo).unwrap_or(*self.wallet.change.payment_key())).or_default().push(utxo);
        }
        let home = by_key.remove(self.wallet.change.payment_key());
        let richest = by_key.into_values().max_by_key(|utxos| lovelace_of(utxos));
        let all = richest.is_some().then(|| self.wallet.utxos.iter().collect::<Vec<_>>());
        let home = home.map(|utxos| Payers { buyer: self.wallet.change, first: None, utxos });
        let first = all.iter().flatten().copied().max_by_key(|utxo| (utxo.is_plain(), utxo.value.lovelace));
        let richest = richest.and_then(|utxos| Payers::of(utxos, None));
        let all = all.and_then(|utxos| Payers::of(utxos, first));
        home.into_iter().chain(richest).chain(all).collect()
    }

    fn build(&self, payers: &Payers<'_>) -> Result<(UnsignedTx, PaymentOutput), PaymentDraftError> {
        let output = self.method.output(self.offered, &payers.buyer, None, self.parameters, &api_types::SLOTS);
        let output = output.map_err(|error| match error {
            CannotPay::SamePayout => PaymentDraftError::OwnListing,
            error => PaymentDraftError::CannotPay(error),
        })?;
        let slot = api_types::SLOTS.slot_at(self.order.clock).unwrap_or(0);
        let until = slot.saturating_add(VALID_SECONDS).min(output.latest_end_slot);
        let plan = TxPlan {
            outputs: vec![output.output.clone()],
            inputs: payers.first.into_iter().cloned().collect(),
            wallet_keys: payers.utxos.iter().filter_map(|utxo| key_of(utxo)).collect(),
            validity: Validity { from: None, until },
            auxiliary_data: self.order.commitment.map(|commitment| commitment.auxiliary_data()),
            ..TxPlan::default()
        };
        let orders: [fn(&Utxo) -> bool; 2] = [Utxo::is_plain, |_| true];
        for preferred in orders {
            let (few, left) = largest_few(&payers.utxos, payers.first, preferred);
            let wallet = Wallet { address: self.wallet.change, utxos: &few, reserved: &BTreeSet::new() };
            match build(&plan, &wallet, self.parameters) {
                Ok(tx) => return Ok((tx, output)),
                Err(BuildError::Insufficient { missing }) if missing > left => {
                    return Err(PaymentDraftError::Insufficient { missing, wallet: self.wallet.change });
                }
                Err(BuildError::Insufficient { .. }) => {}
                Err(error) => return Err(PaymentDraftError::Build(error)),
            }
        }
        let needed = output.output.value.lovelace.checked_add(FEE_AND_CHANGE).unwrap_or(Lovelace::MAX);
        Err(PaymentDraftError::Scattered { needed })
    }

    /// Returns the input that identifies the payer, and the payer's address. For an instant payment, the payer is the
    /// input's owner. For a protected payment, the payer is the buyer named in the escrow.
    fn payer(&self, tx: &UnsignedTx, buyer: &Address) -> Result<(TxRef, Address), PaymentDraftError> {
        let inputs = &tx.facts().inputs;
        let owned = self.wallet.utxos.iter().filter(|utxo| key_of(utxo).as_ref() == Some(buyer.payment_key()));
        let spent = owned.filter(|utxo| inputs.contains(&utxo.reference));
        let home = buyer.to_string();
        let named = spent.max_by_key(|utxo| (utxo.address == home, Reverse(utxo.reference)));
        let broken = PaymentDraftError::Build(BuildError::Malformed { what: "the payer's output" });
        let named = named.ok_or_else(|| broken.clone())?;
        let payer = match self.order.mode {
            DeliveryMode::Protected => *buyer,
            DeliveryMode::Instant => named.address.parse().map_err(|_| broken)?,
        };
        Ok((named.reference, payer))
    }
}

impl<'a> Payers<'a> {
    /// Returns the payers who own these outputs; `None` if there are no outputs. The buyer is the owner of `first`, or
    /// else of the largest output.
    fn of(utxos: Vec<&'a Utxo>, first: Option<&'a Utxo>) -> Option<Self> {
        let named = first.or_else(|| utxos.iter().copied().max_by_key(|utxo| utxo.value.lovelace))?;
        Some(Self { buyer: named.address.parse().ok()?, first, utxos })
    }
}
