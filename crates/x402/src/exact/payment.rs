//! Parses a buyer's payment into a transaction and a nonce.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    TxHash, TxRef,
    tx::{DecodeError, MAX_TX_BYTES, SignedTx},
};

use crate::wire::ExactPayload;

/// A payment that was parsed but not verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    /// Signed transaction.
    pub tx: SignedTx,
    /// Reference of the input whose owner is the payer.
    pub nonce: TxRef,
}

refusals! {
    /// Reason why the field `payload` of a payment cannot be parsed.
    pub enum InvalidPayload {
        /// `payload.transaction` is not base64.
        #[error("payload.transaction is not base64 (standard alphabet, padded)")]
        TransactionNotBase64 => "invalid_exact_cardano_payload_transaction_decode_failed",
        /// The transaction cannot be decoded.
        #[error("payload.transaction: {0}")]
        TransactionMalformed(#[from] DecodeError) => "invalid_exact_cardano_payload_transaction_decode_failed",
        /// The nonce does not have the form `txHash#index`.
        #[error("payload.nonce is not a UTxO reference: name one input as txHash#index in lowercase")]
        NonceMalformed => "invalid_exact_cardano_payload_nonce_invalid",
    }
}

impl Payment {
    /// Parses the transaction and the nonce in the field `payload` of a payment.
    ///
    /// # Errors
    /// See [`InvalidPayload`].
    pub fn read(payload: &ExactPayload) -> Result<Self, InvalidPayload> {
        let ExactPayload { transaction, nonce } = payload;
        if transaction.len() > base64::encoded_len(MAX_TX_BYTES, true).unwrap_or(0) {
            return Err(DecodeError::TooLarge.into());
        }
        let nonce = nonce.parse().map_err(|_| InvalidPayload::NonceMalformed)?;
        let cbor = STANDARD.decode(transaction).map_err(|_| InvalidPayload::TransactionNotBase64)?;
        Ok(Self { tx: SignedTx::parse(&cbor)?, nonce })
    }

    /// Creates a payment from a transaction that a wallet of this service signed. The owner of the first input is the
    /// payer.
    ///
    /// # Errors
    /// [`DecodeError`] if the transaction cannot be decoded.
    pub fn of_transaction(cbor: &[u8]) -> Result<Self, DecodeError> {
        let tx = SignedTx::parse(cbor)?;
        let nonce = *tx.inputs.first().ok_or(DecodeError::Empty("inputs"))?;
        Ok(Self { tx, nonce })
    }

    /// Returns the ids of the transactions whose outputs the payment spends.
    #[must_use]
    pub fn sources(&self) -> BTreeSet<TxHash> {
        self.tx.inputs.iter().map(|input| input.tx).collect()
    }
}
