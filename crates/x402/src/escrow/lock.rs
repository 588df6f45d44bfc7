//! Verifies a lock: the buyer's transaction against the terms that the seller signed.
//!
//! The contract runs only when an escrow is spent, not when it is created, so an error in a lock that is not found here
//! would strand the money. Every rule of the scheme document ("Facilitator Verification Rules", the additional ones,
//! and "Lock invariants") is a function in one table; one function checks all fields that the seller signed. If the
//! subject of a rule is absent, the rule passes, because another rule rejects the absence. Where one rule implies
//! another, the implying rule says so.

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

/// Input for the verification of a lock. A lock is a transaction that pays into the escrow.
#[derive(Clone, Copy, Debug)]
pub struct LockFacts<'a> {
    /// Transaction that is to create the escrow.
    pub tx: &'a SignedTx,
    /// Signed terms that the escrow must follow.
    pub terms: &'a AuthorizedTerms,
    /// Address of the payer: the owner of the output that the payment's nonce names.
    pub payer: &'a Address,
    /// Protocol parameters of the current epoch.
    pub parameters: &'a ProtocolParameters,
    /// Conversion between slots and time.
    pub slots: &'a SlotConfig,
}

/// A payment into the escrow contract that satisfies all rules of the payment method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLock {
    /// The buyer's address according to the datum.
    pub buyer: Address,
    /// Datum of the escrow that the lock creates.
    pub datum: Datum,
    /// Digest that identifies the seller's terms. A service must accept only the first transaction that pays under
    /// these terms.
    pub terms_digest: TermsDigest,
    /// Index of the escrow among the outputs of the transaction.
    pub output_index: u16,
    /// Address of the escrow's output.
    pub address: PlutusAddress,
    /// Lovelace in the escrow, including the collateral.
    pub locked: Lovelace,
    /// The buyer's collateral: lovelace in addition to the price, which the buyer gets back in the end.
    pub collateral: Lovelace,
}

refusals! {
    /// The rule that a lock breaks.
    #[derive(Copy)]
    pub enum LockError {
        /// The transaction does not have exactly one output at the escrow's address. Contains the number of such outputs.
        #[error("the transaction must have exactly one output at the escrow address, and has {0}")]
        OutputCount(usize) => "invalid_exact_cardano_payload_masumi_escrow_output_count",
        /// The escrow output has no inline datum.
        #[error("the escrow output has no inline datum: it could never be spent")]
        DatumMissing => "invalid_exact_cardano_payload_masumi_datum_missing",
        /// The escrow output carries a script.
        #[error("the escrow output carries a reference script")]
        ReferenceScript => "invalid_exact_cardano_payload_masumi_reference_script",
        /// The datum is not of the contract's type.
        #[error("the escrow datum: {0}")]
        DatumSchema(InvalidDatum) => "invalid_exact_cardano_payload_masumi_datum_invalid",
        /// The escrow does not begin in the state `FundsLocked`.
        #[error("the escrow datum is not in the state FundsLocked")]
        State => "invalid_exact_cardano_payload_masumi_datum_state",
        /// The datum already contains a result.
        #[error("the escrow datum has a result already")]
        Result => "invalid_exact_cardano_payload_masumi_datum_result",
        /// The datum already contains a cooldown.
        #[error("the escrow datum has a cooldown already")]
        Cooldown => "invalid_exact_cardano_payload_masumi_datum_cooldown",
        /// The buyer's address or return address is a script's.
        #[error("the escrow datum's {0} is a script: it must be an address with a payment key")]
        ScriptParty(&'static str) => "invalid_exact_cardano_payload_masumi_datum_script_party",
        /// The buyer's address or return address is the escrow itself, so the buyer could never be paid.
        #[error("the escrow datum's {0} is the escrow itself")]
        EscrowParty(&'static str) => "invalid_exact_cardano_payload_masumi_datum_escrow_party",
        /// Buyer and seller would be paid at the same address.
        #[error("the buyer's and the seller's payout addresses are the same")]
        SamePayout => "invalid_exact_cardano_payload_masumi_datum_same_payout",
        /// The datum's buyer does not own the output that the nonce names.
        #[error("the escrow datum's buyer does not own the output that payload.nonce names")]
        Buyer => "invalid_exact_cardano_payload_masumi_datum_buyer",
        /// The buyer did not sign the transaction.
        #[error("the escrow datum's buyer has not signed the transaction")]
        BuyerWitness => "invalid_exact_cardano_payload_masumi_buyer_witness",
        /// A field of the datum differs from the signed terms.
        #[error("the escrow datum's {0} is not as the seller signed it")]
        Mismatch(Field) as field,
        /// The collateral is below the minimum, but not zero.
        #[error("collateral_return_lovelace must be 0 or at least {}", collateral::MIN_COLLATERAL)]
        Collateral => "invalid_exact_cardano_payload_masumi_collateral",
        /// The output does not hold exactly price plus collateral. Contains that sum.
        #[error("the escrow output must hold exactly price and collateral, {0} lovelace")]
        Value(Lovelace) => "invalid_exact_cardano_payload_masumi_value",
        /// The escrow output holds native tokens.
        #[error("the escrow output holds tokens, which the price does not ask for")]
        Assets => "invalid_exact_cardano_payload_masumi_asset",
        /// The escrow output holds less lovelace than the ledger will demand once the datum contains a result. Contains the
        /// demanded amount.
        #[error("the escrow output must hold at least {0} lovelace to carry the seller's result: add collateral")]
        MinUtxo(Lovelace) => "invalid_exact_cardano_payload_masumi_min_utxo",
        /// The transaction has no TTL, or its TTL is after `pay_by_time`.
        #[error("the transaction needs a TTL that is not after pay_by_time")]
        Ttl => "invalid_exact_cardano_payload_masumi_deadline",
    }
}

refusals! {
    /// A field of the escrow's datum that the seller's terms determine.
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

/// A lock to be checked, together with the escrow output that was found in its transaction.
#[derive(Clone, Debug)]
pub struct Lock<'a> {
    facts: LockFacts<'a>,
    outputs: usize,
    output: Option<(u16, &'a Output)>,
    datum: Option<Result<Datum, InvalidDatum>>,
}

impl<'a> Lock<'a> {
    /// Finds the escrow output among the transaction's outputs.
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

    /// Checks every rule for locks.
    ///
    /// # Errors
    /// Returns the first rule that the lock breaks.
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

/// Verifies a lock against every rule.
///
/// # Errors
/// Returns the first rule that the lock breaks.
pub fn verify_lock(facts: LockFacts<'_>) -> Result<VerifiedLock, LockError> {
    Lock::read(facts).verify()
}

#[cfg(test)]
mod tests;
