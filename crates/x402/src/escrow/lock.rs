//! Verification of a lock: the transaction against the terms that the seller signed.
//!
//! The contract runs only when an escrow is spent, never when it is made: what is wrong with a lock is found here or
//! strands the money. Every rule of the scheme document ("Facilitator Verification Rules", the additional ones, and
//! "Lock invariants") is one function in one table and judges one thing. It passes where the thing is not there at all,
//! which another rule refuses. A rule that others imply is named where it is implied.

use ::escrow::{Datum, InvalidDatum, MIN_REFERENCE_SIGNATURE_BYTES, PlutusAddress, State, collateral};
use cardano::{
    Address, KeyHash, Lovelace,
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::{Output, OutputDatum, SignedTx},
};

use super::authorization::AuthorizedTerms;
use super::terms::TermsDigest;

mod rules;

pub use rules::RULES;

/// What a lock is judged by. Everything was read before.
#[derive(Clone, Copy, Debug)]
pub struct LockFacts<'a> {
    /// The transaction.
    pub tx: &'a SignedTx,
    /// The terms that it must lock under.
    pub terms: &'a AuthorizedTerms,
    /// Who owns the output that the payment's nonce names.
    pub payer: &'a Address,
    /// The protocol parameters of the current epoch.
    pub parameters: &'a ProtocolParameters,
    /// How slots map to time.
    pub slots: &'a SlotConfig,
}

/// A lock that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLock {
    /// Who bought.
    pub buyer: Address,
    /// The escrow as it will be on the chain.
    pub datum: Datum,
    /// The logical replay key: the first transaction that claims it keeps it.
    pub terms_digest: TermsDigest,
    /// Which output of the transaction the escrow is.
    pub output_index: u16,
    /// Where it is.
    pub address: PlutusAddress,
    /// What is locked, collateral included.
    pub locked: Lovelace,
    /// The buyer's collateral.
    pub collateral: Lovelace,
}

/// Which rule a lock breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Not exactly one output at the escrow's address.
    #[error("the transaction must have exactly one output at the escrow address, and has {0}")]
    OutputCount(usize),
    /// The escrow output has no inline datum.
    #[error("the escrow output has no inline datum: it could never be spent")]
    DatumMissing,
    /// The escrow output carries a script.
    #[error("the escrow output carries a reference script")]
    ReferenceScript,
    /// Not the contract's datum.
    #[error("the escrow datum: {0}")]
    DatumSchema(InvalidDatum),
    /// Another state than `FundsLocked`.
    #[error("the escrow datum is not in the state FundsLocked")]
    State,
    /// A result before there is one.
    #[error("the escrow datum has a result already")]
    Result,
    /// A cooldown on a fresh lock.
    #[error("the escrow datum has a cooldown already")]
    Cooldown,
    /// The buyer's, or the buyer's return, address is a script's.
    #[error("the escrow datum's {0} is a script: it must be an address with a payment key")]
    ScriptParty(&'static str),
    /// A return address is the escrow itself: no payout could ever be made.
    #[error("the escrow datum's {0} is the escrow itself")]
    EscrowParty(&'static str),
    /// Both parties are paid at the same address.
    #[error("the buyer's and the seller's payout addresses are the same")]
    SamePayout,
    /// The datum's buyer does not own the nonce.
    #[error("the escrow datum's buyer does not own the output that payload.nonce names")]
    Buyer,
    /// The buyer did not sign.
    #[error("the escrow datum's buyer has not signed the transaction")]
    BuyerWitness,
    /// A field that must be as signed.
    #[error("the escrow datum's {0} is not as the seller signed it")]
    Mismatch(Field),
    /// Some collateral, but less than the least.
    #[error("collateral_return_lovelace must be 0 or at least {}", collateral::MIN_COLLATERAL)]
    Collateral,
    /// Another sum than price and collateral.
    #[error("the escrow output must hold exactly price and collateral, {0} lovelace")]
    Value(Lovelace),
    /// Tokens beside the price.
    #[error("the escrow output holds tokens, which the price does not ask for")]
    Assets,
    /// Too little to carry the result later.
    #[error("the escrow output must hold at least {0} lovelace to carry the seller's result: add collateral")]
    MinUtxo(Lovelace),
    /// No TTL, or one after `pay_by_time`.
    #[error("the transaction needs a TTL that is not after pay_by_time")]
    Ttl,
}

refusals! {
    /// The datum's fields that the terms fix, by their names in the contract.
    #[derive(Copy)]
    #[allow(missing_docs, reason = "the names are those of the contract's datum")]
    pub enum Field {
        #[error("seller")]
        Seller => "invalid_exact_cardano_payload_masumi_datum_seller",
        #[error("seller_return_address")]
        SellerReturnAddress => "invalid_exact_cardano_payload_masumi_datum_seller_return_address",
        #[error("reference_key")]
        ReferenceKey => "invalid_exact_cardano_payload_masumi_datum_reference_key",
        #[error("reference_signature")]
        ReferenceSignature => "invalid_exact_cardano_payload_masumi_datum_reference_signature",
        #[error("seller_nonce")]
        SellerNonce => "invalid_exact_cardano_payload_masumi_datum_seller_nonce",
        #[error("buyer_nonce")]
        BuyerNonce => "invalid_exact_cardano_payload_masumi_datum_buyer_nonce",
        #[error("agent_identifier")]
        AgentIdentifier => "invalid_exact_cardano_payload_masumi_datum_agent_identifier",
        #[error("input_hash")]
        InputHash => "invalid_exact_cardano_payload_masumi_datum_input_hash",
        #[error("pay_by_time")]
        PayByTime => "invalid_exact_cardano_payload_masumi_datum_pay_by_time",
        #[error("submit_result_time")]
        SubmitResultTime => "invalid_exact_cardano_payload_masumi_datum_submit_result_time",
        #[error("unlock_time")]
        UnlockTime => "invalid_exact_cardano_payload_masumi_datum_unlock_time",
        #[error("external_dispute_unlock_time")]
        ExternalDisputeUnlockTime => "invalid_exact_cardano_payload_masumi_datum_external_dispute_unlock_time",
    }
}

impl LockError {
    /// The stable code; the reference implementation's where it has one for exactly this rule.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::OutputCount(_) => "invalid_exact_cardano_payload_masumi_escrow_output_count",
            Self::DatumMissing => "invalid_exact_cardano_payload_masumi_datum_missing",
            Self::ReferenceScript => "invalid_exact_cardano_payload_masumi_reference_script",
            Self::DatumSchema(_) => "invalid_exact_cardano_payload_masumi_datum_invalid",
            Self::State => "invalid_exact_cardano_payload_masumi_datum_state",
            Self::Result => "invalid_exact_cardano_payload_masumi_datum_result",
            Self::Cooldown => "invalid_exact_cardano_payload_masumi_datum_cooldown",
            Self::ScriptParty(_) => "invalid_exact_cardano_payload_masumi_datum_script_party",
            Self::EscrowParty(_) => "invalid_exact_cardano_payload_masumi_datum_escrow_party",
            Self::SamePayout => "invalid_exact_cardano_payload_masumi_datum_same_payout",
            Self::Buyer => "invalid_exact_cardano_payload_masumi_datum_buyer",
            Self::BuyerWitness => "invalid_exact_cardano_payload_masumi_buyer_witness",
            Self::Mismatch(field) => field.code(),
            Self::Collateral => "invalid_exact_cardano_payload_masumi_collateral",
            Self::Value(_) => "invalid_exact_cardano_payload_masumi_value",
            Self::Assets => "invalid_exact_cardano_payload_masumi_asset",
            Self::MinUtxo(_) => "invalid_exact_cardano_payload_masumi_min_utxo",
            Self::Ttl => "invalid_exact_cardano_payload_masumi_deadline",
        }
    }
}

/// The escrow output of a transaction, read once for all rules.
#[derive(Clone, Debug)]
pub struct Lock<'a> {
    facts: LockFacts<'a>,
    outputs: usize,
    output: Option<(u16, &'a Output)>,
    datum: Option<Result<Datum, InvalidDatum>>,
}

impl<'a> Lock<'a> {
    /// Looks for the escrow output.
    #[must_use]
    pub fn read(facts: LockFacts<'a>) -> Self {
        let escrow = facts.terms.escrow.to_bytes();
        let mut at_escrow = (0u16..).zip(&facts.tx.outputs).filter(|(_, output)| output.address == escrow);
        let output = at_escrow.next();
        let outputs = at_escrow.count().saturating_add(usize::from(output.is_some()));
        let datum = output.and_then(|(_, output)| match &output.datum {
            Some(OutputDatum::Inline(cbor)) => Some(Datum::from_cbor(cbor)),
            _ => None,
        });
        Self { facts, outputs, output, datum }
    }

    fn datum(&self) -> Option<&Datum> {
        self.datum.as_ref()?.as_ref().ok()
    }

    /// Judges the lock by every rule.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn verify(self) -> Result<VerifiedLock, LockError> {
        for rule in RULES {
            rule(&self)?;
        }
        let (output_index, output) = self.output.ok_or(LockError::OutputCount(self.outputs))?;
        let datum = self.datum.ok_or(LockError::DatumMissing)?.map_err(LockError::DatumSchema)?;
        Ok(VerifiedLock {
            buyer: datum.buyer.key_address().ok_or(LockError::ScriptParty("buyer"))?,
            terms_digest: self.facts.terms.terms_digest,
            output_index,
            address: self.facts.terms.escrow,
            locked: output.value.lovelace,
            collateral: datum.collateral_return,
            datum,
        })
    }
}

/// Verifies a lock.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify_lock(facts: LockFacts<'_>) -> Result<VerifiedLock, LockError> {
    Lock::read(facts).verify()
}

#[cfg(test)]
mod tests;
