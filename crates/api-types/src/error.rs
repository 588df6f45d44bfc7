//! Errors as the API returns them.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[error("{error}")]
pub struct Error {
    /// A message for people. If `field` is present, the message begins with the field's name, a colon and a space.
    pub error: String,
    /// Code for programs. It stays the same when the message changes.
    pub code: ErrorCode,
    /// Name or path (such as `utxos[3]`) of the field of the body or query that caused the error; absent if no single
    /// field did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Error {
    /// Creates an error that concerns the whole request.
    pub fn new(code: ErrorCode, text: impl fmt::Display) -> Self {
        Self { error: text.to_string(), code, field: None }
    }

    /// Creates an error of one field. `rule` says what a valid value is.
    pub fn of_field(code: ErrorCode, field: impl fmt::Display, rule: impl fmt::Display) -> Self {
        Self { error: format!("{field}: {rule}"), code, field: Some(field.to_string()) }
    }
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    // The request.
    /// The body is not a single JSON object, or has too many values.
    MalformedBody,
    /// The body has an unsupported media type.
    UnsupportedMediaType,
    /// The body is too large.
    BodyTooLarge,
    /// The body was not received completely in time.
    BodyNotReceived,
    /// A required field or parameter is missing.
    MissingField,
    /// A field has the wrong type.
    WrongType,
    /// The value of a field is not allowed.
    InvalidValue,
    /// A text is too short or too long.
    InvalidLength,
    /// A list has too many items.
    TooManyItems,
    /// A text contains a character that hides or reorders others.
    ForbiddenCharacter,
    /// A text contains no visible character.
    NothingVisible,
    /// A text is not an address of a payment key on this network.
    InvalidAddress,
    /// No route has this path.
    UnknownPath,
    /// The path exists, but does not support this HTTP method.
    MethodNotAllowed,
    // Offers.
    /// The price is below the minimum for the listing's delivery modes.
    PriceTooLow,
    /// The public texts of a listing reveal most of its content.
    RevealsContent,
    /// The seller has reached the maximum number of listings or total size of contents.
    QuotaExceeded,
    /// The number of listings created today, or of agents connected today, has reached its limit.
    DailyQuotaExceeded,
    /// The proof was already used to create a different listing.
    ProofReused,
    // Authentication.
    /// There is no session, or it has expired.
    NotSignedIn,
    /// The bearer token is missing or invalid.
    InvalidToken,
    /// The header `X-Service-Proof` or `SIGN-IN-WITH-X` is malformed, was signed for another purpose, or has an invalid
    /// signature.
    InvalidProof,
    /// `X-Service-Proof` or the challenge in `SIGN-IN-WITH-X` is older than 5 minutes.
    ProofExpired,
    /// `X-Service-Proof` is dated in the future.
    ProofFromFuture,
    /// `X-Service-Proof` is signed by another address.
    WrongSigner,
    /// The signature of a wallet is invalid.
    InvalidSignature,
    /// The challenge has expired, was used, or was never issued.
    ChallengeExpired,
    /// The consent request has expired or is malformed.
    ConsentExpired,
    /// The request is allowed only for the seller, the buyer, or the account that paid.
    NotYours,
    /// A page of another site is not allowed to send this request.
    ForeignPage,
    // Unknown things.
    /// No listing for sale has this id.
    UnknownListing,
    /// No purchase has this id, or it is another account's.
    UnknownPurchase,
    /// No open purchase request has this id, or it is another account's.
    UnknownRequest,
    /// The account has no agent with this id.
    UnknownAgent,
    /// No feed has this token.
    UnknownFeed,
    /// The account has no webhook.
    NoWebhook,
    /// The webhook is switched off.
    WebhookOff,
    // Paying.
    /// A payment is required for the listing.
    PaymentRequired,
    /// The header with the payment is malformed.
    MalformedPayment,
    /// The payment does not satisfy the terms, or was rejected by the ledger.
    PaymentRefused,
    /// The payment is not confirmed yet. Repeat the same request.
    PaymentPending,
    /// The payment was already public on the chain when the service received it, so the payer must sign a proof.
    PaymentPublic,
    /// The payer has too many payments whose outcome is not known yet.
    PayerUnresolved,
    /// An earlier payment for the same listing may still be included in a block.
    EarlierPaymentUnresolved,
    /// The payment identifier belongs to another payment.
    PaymentIdentifierTaken,
    /// The purchase was refunded.
    Refunded,
    /// No result was posted in time, so the buyer may withdraw the money.
    Refundable,
    /// The address has not bought the listing.
    NotOwned,
    /// The listing is not sold in this delivery mode.
    NotOffered,
    /// The seller has changed the price.
    PriceChanged,
    /// Buyer and seller are the same.
    OwnListing,
    /// The price is above the account's limit for one purchase.
    OverPurchaseLimit,
    /// The account has spent its limit for today.
    OverDailyLimit,
    /// The agent's owner must approve the purchase first.
    ApprovalNeeded,
    /// The owner has paused all agents. Only the owner can end the pause.
    AgentsPaused,
    /// The owner lets agents buy only with buyer protection.
    ProtectedOnly,
    /// The owner lets agents buy only from sellers with a higher reputation.
    ReputationTooLow,
    /// Another request is making the same purchase.
    PurchaseInProgress,
    /// The payment was not included in a block, so nothing was paid.
    PaymentFailed,
    /// The wallet is in use by other payments.
    WalletBusy,
    /// The balance of the wallet is too low.
    InsufficientFunds,
    /// The balance of the wallet suffices, but is spread over too many outputs.
    WalletScattered,
    /// The wallet has no output that is suitable as collateral.
    NoCollateral,
    /// An output of the wallet does not exist on this network, or is spent.
    OutputNotFound,
    /// No transaction can be built from the wallet's outputs.
    CannotBuild,
    /// The account has no owner to whom its balance could be sent, because it is the shared demo account.
    NoOwner,
    /// The balance does not exceed the amount that is kept for fees.
    NothingToWithdraw,
    // Acting on an escrow.
    /// The purchase is not protected: it was paid directly to the seller, so no escrow exists.
    NotProtected,
    /// Protected purchases are not configured, or the escrow belongs to a contract that is no longer supported.
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
    /// The client exceeded a rate limit.
    RateLimited,
    /// The service is busy with other requests.
    Busy,
    /// The request needs too many calls to the chain provider.
    TooManyLookups,
    /// Protected purchases are paused while the service catches up with the chain.
    ProtectedPaused,
    /// The database is almost full, so requests that store data free of charge are refused.
    StorageFull,
    /// A part of the service does not answer.
    Unavailable,
    /// A setting of the service is missing or invalid.
    Misconfigured,
    /// Internal error of the service.
    Internal,
}
