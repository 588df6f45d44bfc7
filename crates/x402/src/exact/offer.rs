//! What a buyer hands over, read into types: the transaction and the nonce.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    TxHash, TxRef,
    tx::{DecodeError, MAX_TX_BYTES, SignedTx},
};

use crate::{
    Refusal,
    wire::{PaymentPayload, PaymentRequirements, decode_header},
};

/// A payment as offered: read, not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The entry that the buyer says to have chosen.
    pub accepted: PaymentRequirements,
    /// The transaction.
    pub tx: SignedTx,
    /// The input that names the payer.
    pub nonce: TxRef,
}

impl Offer {
    /// Reads the value of a `PAYMENT-SIGNATURE` header.
    ///
    /// # Errors
    /// Whatever keeps it from being a payment.
    pub fn from_header(value: &str) -> Result<Self, Refusal> {
        Self::from_payload(decode_header(value)?)
    }

    /// The transactions whose outputs it spends.
    #[must_use]
    pub fn sources(&self) -> BTreeSet<TxHash> {
        self.tx.inputs.iter().map(|input| input.tx).collect()
    }

    /// Reads a payment that came some other way.
    ///
    /// # Errors
    /// As [`Offer::from_header`].
    pub fn from_payload(payload: PaymentPayload) -> Result<Self, Refusal> {
        let encoded = payload.payload.transaction;
        if encoded.len() > base64::encoded_len(MAX_TX_BYTES, true).unwrap_or(0) {
            return Err(DecodeError::TooLarge.into());
        }
        let nonce = payload.payload.nonce.parse().map_err(|_| Refusal::NonceMalformed)?;
        let cbor = STANDARD.decode(encoded).map_err(|_| Refusal::TransactionNotBase64)?;
        Ok(Self { accepted: payload.accepted, tx: SignedTx::parse(&cbor)?, nonce })
    }
}
