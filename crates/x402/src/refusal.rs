//! Why a payment is refused: one list, a stable code each, a message that says what to do.
//!
//! Codes that the scheme's other implementations use for the same fact are theirs (x402-foundation/x402,
//! `typescript/packages/mechanisms/cardano/src/constants.ts`), so that clients need one table.

use cardano::{
    Lovelace, TxHash, TxRef,
    hash::KeyHash,
    tx::{DecodeError, Part},
};

use crate::{escrow::LockError, wire::HeaderError};

/// Why a payment is refused. Nothing was paid, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The header is not a v2 payment.
    #[error("PAYMENT-SIGNATURE cannot be read: {0}")]
    Header(#[from] HeaderError),
    /// Another scheme than `exact`.
    #[error("only the scheme \"exact\" is offered: choose an entry of accepts")]
    Scheme,
    /// The accepted entry names another network.
    #[error("the accepted network is not the one offered: pay on {0}")]
    Network(&'static str),
    /// What was accepted is not what is offered.
    #[error(
        "accepted.{0} is not what is offered now: request the resource again and echo one entry of accepts unchanged"
    )]
    AcceptedDiffers(&'static str),
    /// The requirements, which are ours, make no sense. A fault of the service.
    #[error("the payment requirements are invalid: {0}")]
    Requirements(&'static str),

    /// `payload.transaction` is not base64.
    #[error("payload.transaction is not base64 (standard alphabet, padded)")]
    TransactionNotBase64,
    /// Not a transaction that we read.
    #[error("payload.transaction: {0}")]
    TransactionMalformed(#[from] DecodeError),
    /// The body names another network.
    #[error("the transaction is for another network: build it for {0}")]
    NetworkId(&'static str),
    /// An output at an address of mainnet, a Byron address, or one that is no payment address.
    #[error("output {0} is not at a base or enterprise address of this network")]
    OutputAddress(usize),
    /// A part that a plain payment does not have.
    #[error("a payment must not have {0:?}: build a plain transaction of inputs, outputs, fee and TTL")]
    UnsupportedPart(Part),
    /// Auxiliary data with scripts.
    #[error("a payment's auxiliary data may only be metadata")]
    AuxiliaryScripts,
    /// Body and auxiliary data do not belong together.
    #[error("the auxiliary data is not what the transaction body says: build the transaction again")]
    AuxiliaryDataHash,
    /// A datum or script on an output.
    #[error("output {0} carries a datum or a reference script, which a payment must not")]
    OutputNotPlain(usize),
    /// The transaction says of itself that its scripts fail.
    #[error("the transaction is marked as failing its scripts")]
    MarkedInvalid,

    /// No signature at all.
    #[error("the transaction is not signed: sign it, do not submit it, and send it whole")]
    Unsigned,
    /// A signature that does not verify, whoever's.
    #[error("the signature by key {0} does not verify: sign exactly the transaction that you send")]
    InvalidSignature(KeyHash),
    /// An owner of an input, or a required signer, did not sign.
    #[error("the signature of key {0} is missing: every owner of an input and every required signer must sign")]
    MissingSignature(KeyHash),

    /// No output at `payTo`.
    #[error("no output pays {0}")]
    Recipient(String),
    /// Outputs at `payTo` without the asset.
    #[error("the output to payTo holds none of the asset that is asked for")]
    AssetMissing,
    /// No single output at `payTo` holds the amount.
    #[error("no single output to payTo holds the {asked} that are asked for; the most is {most}")]
    AmountInsufficient {
        /// What is asked for.
        asked: u64,
        /// The most in one output.
        most: u64,
    },

    /// The nonce is not `txHash#index`.
    #[error("payload.nonce is not a UTxO reference: name one input as txHash#index in lowercase")]
    NonceMalformed,
    /// The nonce is not spent by the transaction.
    #[error("payload.nonce {0} is not an input of the transaction")]
    NonceNotInput(TxRef),
    /// The nonce does not exist, or was spent.
    #[error("payload.nonce {0} is not an unspent output on the chain")]
    NonceNotUnspent(TxRef),
    /// The payer is the payee.
    #[error("the payer and payTo are the same key: nobody is paid")]
    SelfPayment,

    /// More transactions to look up than a request may.
    #[error("the inputs come from {found} transactions, at most {most} are looked up: spend fewer, larger outputs")]
    TooManyInputTransactions {
        /// How many.
        found: usize,
        /// How many may.
        most: usize,
    },
    /// An input that is in no block yet, or never was.
    #[error("input {0} is not on the chain: wait until the transaction that makes it is in a block")]
    InputUnknown(TxRef),
    /// An input that was spent.
    #[error("input {input} was already spent by {by}")]
    InputSpent {
        /// Which.
        input: TxRef,
        /// Spent by.
        by: TxHash,
    },
    /// An input that no key alone unlocks.
    #[error("input {0} is not at a preprod address with a payment key")]
    InputAddress(TxRef),
    /// An input that carries a script, which would raise the fee.
    #[error("input {0} carries a reference script: spend another output")]
    InputScript(TxRef),

    /// Inputs and outputs do not balance.
    #[error("the value of {0} is not conserved: inputs must equal outputs plus fee")]
    ValueNotConserved(String),
    /// The fee is too low.
    #[error("the fee of {offered} lovelace is below the minimum of {least}")]
    FeeTooLow {
        /// What it offers.
        offered: Lovelace,
        /// What the ledger asks for.
        least: Lovelace,
    },
    /// The transaction is too large for the ledger.
    #[error("the transaction has {bytes} bytes, the ledger allows {most}")]
    TooLarge {
        /// How many.
        bytes: usize,
        /// How many may.
        most: u64,
    },
    /// An output holds too many different tokens.
    #[error("the value of output {0} is too large: spread its tokens over several outputs")]
    ValueTooLarge(usize),
    /// An output holds too little.
    #[error("output {output} holds less than its minimum of {least} lovelace")]
    MinUtxo {
        /// Which.
        output: usize,
        /// What it must hold.
        least: Lovelace,
    },

    /// No time to live.
    #[error("the transaction has no TTL: set one within maxTimeoutSeconds")]
    TtlMissing,
    /// The TTL has passed.
    #[error("the transaction's TTL, slot {ttl}, has passed (slot {now} now): build a new one")]
    TtlExpired {
        /// The TTL.
        ttl: u64,
        /// The current slot.
        now: u64,
    },
    /// The TTL is too far away.
    #[error("the transaction's TTL, slot {ttl}, is after slot {most}, the latest that maxTimeoutSeconds allows")]
    TtlTooFar {
        /// The TTL.
        ttl: u64,
        /// The latest that is allowed.
        most: u64,
    },
    /// Not valid yet.
    #[error("the transaction is valid from slot {start} only (the chain is at {tip}): leave its start out or lower it")]
    NotYetValid {
        /// Its start.
        start: u64,
        /// The newest block's slot.
        tip: u64,
    },

    /// The accepted entry is no quote of this service for this listing.
    #[error("the accepted requirements are not a quote of this service for this listing: request the terms again")]
    QuoteUnknown,
    /// The quote's time to pay is over.
    #[error("this quote's time to pay is over: request the terms again and pay under the new ones")]
    QuoteOver,
    /// The lock breaks a rule of the escrow.
    #[error(transparent)]
    Lock(LockError),

    /// The same payment again, after it was delivered or by somebody else.
    #[error("this transaction was already used: a returning buyer sends X-Service-Proof instead of paying")]
    DuplicateSettlement,
    /// The transaction pays for another resource.
    #[error("this transaction already pays for another resource: pay for this one with a new transaction")]
    OtherResource,
    /// The ledger refused the transaction.
    #[error("the ledger refused the transaction: {0}")]
    LedgerRefused(String),
    /// The transaction was not included in time and never will be.
    #[error("the transaction was in no block before its TTL and never will be: build a new one")]
    Expired,
    /// The transaction is submitted and not settled yet. It may still be: send the same header again.
    #[error(
        "the transaction is submitted and not in a block yet: send the same PAYMENT-SIGNATURE again, do not pay anew"
    )]
    Pending,
}

impl Refusal {
    /// The code that stands for this refusal on the wire, for ever.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Header(_) => "invalid_exact_cardano_payload",
            Self::Scheme => "unsupported_scheme",
            Self::Network(_) => "network_mismatch",
            Self::AcceptedDiffers(_) => "invalid_exact_cardano_payload_accepted_mismatch",
            Self::Requirements(_) => "invalid_exact_cardano_requirements",
            Self::TransactionNotBase64 | Self::TransactionMalformed(_) => {
                "invalid_exact_cardano_payload_transaction_decode_failed"
            }
            Self::NetworkId(_) => "invalid_exact_cardano_payload_network_id_mismatch",
            Self::OutputAddress(_) => "invalid_exact_cardano_payload_output_address",
            Self::UnsupportedPart(_) => "invalid_exact_cardano_payload_unsupported_part",
            Self::AuxiliaryScripts => "invalid_exact_cardano_payload_auxiliary_scripts",
            Self::AuxiliaryDataHash => "invalid_exact_cardano_payload_auxiliary_data_hash_mismatch",
            Self::OutputNotPlain(_) => "invalid_exact_cardano_payload_output_not_plain",
            Self::MarkedInvalid => "invalid_exact_cardano_payload_phase2_invalid",
            Self::Unsigned => "invalid_exact_cardano_payload_unsigned",
            Self::InvalidSignature(_) => "invalid_exact_cardano_payload_invalid_signature",
            Self::MissingSignature(_) => "invalid_exact_cardano_payload_missing_signature",
            Self::Recipient(_) => "invalid_exact_cardano_payload_recipient_mismatch",
            Self::AssetMissing => "invalid_exact_cardano_payload_asset_mismatch",
            Self::AmountInsufficient { .. } => "invalid_exact_cardano_payload_amount_insufficient",
            Self::NonceMalformed => "invalid_exact_cardano_payload_nonce_invalid",
            Self::NonceNotInput(_) => "invalid_exact_cardano_payload_nonce_not_in_inputs",
            Self::NonceNotUnspent(_) => "invalid_exact_cardano_payload_nonce_not_on_chain",
            Self::SelfPayment => "invalid_exact_cardano_payload_self_payment",
            Self::TooManyInputTransactions { .. } => "invalid_exact_cardano_payload_too_many_inputs",
            Self::InputUnknown(_) | Self::InputSpent { .. } => "invalid_exact_cardano_payload_input_not_available",
            Self::InputAddress(_) => "invalid_exact_cardano_payload_input_address",
            Self::InputScript(_) => "invalid_exact_cardano_payload_input_reference_script",
            Self::ValueNotConserved(_) => "invalid_exact_cardano_payload_value_not_conserved",
            Self::FeeTooLow { .. } => "invalid_exact_cardano_payload_fee_below_minimum",
            Self::TooLarge { .. } => "invalid_exact_cardano_payload_too_large",
            Self::ValueTooLarge(_) => "invalid_exact_cardano_payload_value_too_large",
            Self::MinUtxo { .. } => "invalid_exact_cardano_payload_min_utxo_insufficient",
            Self::TtlMissing => "invalid_exact_cardano_payload_ttl_missing",
            Self::TtlExpired { .. } => "invalid_exact_cardano_payload_ttl_expired",
            Self::TtlTooFar { .. } => "invalid_exact_cardano_payload_ttl_too_far",
            Self::NotYetValid { .. } => "invalid_exact_cardano_payload_not_yet_valid",
            Self::QuoteUnknown => "masumi_terms_unknown",
            Self::QuoteOver => "masumi_terms_expired",
            Self::Lock(error) => error.code(),
            Self::DuplicateSettlement => "duplicate_settlement",
            Self::OtherResource => "invalid_exact_cardano_payload_other_resource",
            Self::LedgerRefused(_) => "exact_cardano_settlement_definitively_rejected",
            Self::Expired => "exact_cardano_settlement_expired",
            Self::Pending => "settlement_pending",
        }
    }
}
