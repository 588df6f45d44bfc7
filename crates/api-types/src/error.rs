//! Errors as the API answers them.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request is not answered as it asked, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[error("{error}")]
pub struct Error {
    /// A text to show. With `field`, it begins with the field's name, a colon and a space.
    pub error: String,
    /// For programs: it stays the same when the text changes.
    pub code: ErrorCode,
    /// Where one field of the body or of the query is at fault: its name, or its path, such as `utxos[3]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Error {
    /// Creates an error of the whole request.
    pub fn new(code: ErrorCode, text: impl fmt::Display) -> Self {
        Self { error: text.to_string(), code, field: None }
    }

    /// Creates an error of one field, which breaks a rule.
    pub fn of_field(code: ErrorCode, field: impl fmt::Display, rule: impl fmt::Display) -> Self {
        Self { error: format!("{field}: {rule}"), code, field: Some(field.to_string()) }
    }
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    // The request.
    /// The body is not one JSON object, or has too many values.
    MalformedBody,
    /// The body is of another media type.
    UnsupportedMediaType,
    /// The body has more bytes than are read.
    BodyTooLarge,
    /// The body did not arrive, or not in time.
    BodyNotReceived,
    /// A required field or parameter is missing.
    MissingField,
    /// A field is of another type.
    WrongType,
    /// A value is not one of those that are allowed.
    InvalidValue,
    /// A text is too short or too long.
    InvalidLength,
    /// A list has too many items.
    TooManyItems,
    /// A text has a character that hides or reorders others.
    ForbiddenCharacter,
    /// A text has no character that can be seen.
    NothingVisible,
    /// A text is not an address of a payment key on this network.
    InvalidAddress,
    /// No route has this path.
    UnknownPath,
    /// The path takes other methods.
    MethodNotAllowed,
    // Offers.
    /// The price is below the minimum for the modes.
    PriceTooLow,
    /// Public texts show most of the content.
    RevealsContent,
    /// The seller has as many listings, or as much content, as one seller may have.
    QuotaExceeded,
    /// The service takes no more listings, or connects no more agents, today.
    DailyQuotaExceeded,
    /// A proof that made a listing was sent with another offer.
    ProofReused,
    // Who asks.
    /// There is no session, or it has ended.
    NotSignedIn,
    /// A bearer token is missing or not valid.
    InvalidToken,
    /// `X-Service-Proof` cannot be read, or its signature is not valid.
    InvalidProof,
    /// `X-Service-Proof` is older than 5 minutes.
    ProofExpired,
    /// `X-Service-Proof` is dated in the future.
    ProofFromFuture,
    /// `X-Service-Proof` is signed by another address.
    WrongSigner,
    /// A signature of a wallet is not valid.
    InvalidSignature,
    /// The challenge expired, was answered, or was never issued.
    ChallengeExpired,
    /// The consent request expired or cannot be read.
    ConsentExpired,
    /// Only the seller, the buyer, or the account that paid may do this.
    NotYours,
    /// A page of another site may not send this.
    ForeignPage,
    // Unknown things.
    /// No listing for sale has this id.
    UnknownListing,
    /// No purchase has this id, or it is another account's.
    UnknownPurchase,
    /// No open purchase request has this id, or it is another account's.
    UnknownRequest,
    /// The account has no such agent.
    UnknownAgent,
    // Paying.
    /// The listing is to be paid for.
    PaymentRequired,
    /// A payment's header cannot be read.
    MalformedPayment,
    /// A payment does not keep the terms, or the ledger rejects it.
    PaymentRefused,
    /// A payment is not confirmed yet: send the same request again.
    PaymentPending,
    /// A payment was public before it came here, so its payer has to sign a proof.
    PaymentPublic,
    /// The payer has too many payments of which the outcome is not known.
    PayerUnresolved,
    /// An earlier payment for the same listing may still be included.
    EarlierPaymentUnresolved,
    /// The payment identifier belongs to another payment.
    PaymentIdentifierTaken,
    /// The purchase was refunded.
    Refunded,
    /// No result was posted in time: the buyer takes the money back.
    Refundable,
    /// This address has not bought the listing.
    NotOwned,
    /// The listing is not sold in this mode.
    NotOffered,
    /// Buyer and seller are the same.
    OwnListing,
    /// The price is above the account's limit for one purchase.
    OverPurchaseLimit,
    /// The account has spent its limit for today.
    OverDailyLimit,
    /// The agent's owner has to approve the purchase.
    ApprovalNeeded,
    /// Another request makes the same purchase.
    PurchaseInProgress,
    /// The payment was not included; nothing was paid.
    PaymentFailed,
    /// The wallet is in use by other payments.
    WalletBusy,
    /// The wallet holds too little.
    InsufficientFunds,
    /// The wallet holds enough, in too many pieces.
    WalletScattered,
    /// The wallet has no output that can be collateral.
    NoCollateral,
    /// An output of the wallet is not on this network, or is spent.
    OutputNotFound,
    /// No transaction can be built from these outputs.
    CannotBuild,
    /// The account has no owner's address to withdraw to.
    NoOwner,
    /// The balance is below what stays for fees.
    NothingToWithdraw,
    // Acting on an escrow.
    /// The purchase was paid directly to the seller: nothing is locked.
    NotProtected,
    /// Protected purchases are not configured, or are of a contract that is no longer run.
    EscrowUnavailable,
    /// The escrow has ended.
    EscrowEnded,
    /// The action is not possible in the escrow's state.
    ActionNotPossible,
    /// The action is not possible yet.
    TooEarly,
    /// The action is not possible any more.
    TooLate,
    // The service.
    /// Asked for too often.
    RateLimited,
    /// The service is busy with other requests.
    Busy,
    /// The request needs too many look-ups on the chain.
    TooManyLookups,
    /// Protected purchases are paused while the service catches up with the chain.
    ProtectedPaused,
    /// There is no room for what is not paid for.
    StorageFull,
    /// Something that is needed does not answer.
    Unavailable,
    /// The operator has to set something.
    Misconfigured,
    /// A fault of the service.
    Internal,
}
