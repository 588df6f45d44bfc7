//! What travels, as the document describes it. Most answers are made by SQLite and have no type in the code: these are
//! their shapes, and `tests/api` holds the running service to them. Limits are the code's own.

#![expect(dead_code, reason = "shapes: nothing is made of them but their schemas")]

use std::borrow::Cow;

use agents::oauth::client::{MAX_CLIENT_NAME, MAX_REDIRECT_URIS};
use market::{
    account::{MAX_DAILY_BUDGET_ADA, MAX_PER_PAYMENT_ADA},
    listing::{CATEGORIES, MAX_CONTENT_BYTES, MAX_DESCRIPTION, MAX_PREVIEW_URL, MAX_TITLE},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub const HASH: &str = "^[0-9a-f]{64}$";
pub const LOVELACE: &str = "^[0-9]+$";
pub const ADDRESS: &str = "^addr_test1[a-z0-9]+$";
pub const CURSOR: &str = r"^-?\d{1,15}\.-?\d{1,15}$";
/// POSIX milliseconds, as a text.
const TIME: &str = r"^\d+$";

/// What kind of thing it is.
pub struct Category;

impl JsonSchema for Category {
    fn schema_name() -> Cow<'static, str> {
        "Category".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "What kind of thing it is.", "enum": CATEGORIES })
    }
}

/// Why a request is not answered as it asked, and what to do.
#[derive(Serialize, JsonSchema)]
pub struct Error {
    /// For people and programs to show; the status says what kind it is.
    error: String,
}

/// How what was bought is paid for and delivered.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// The seller is paid at once.
    Instant,
    /// The payment waits in the escrow.
    Protected,
}

/// 100 x withdrawn / (withdrawn + refunded), over the seller's closed escrows.
#[derive(Serialize, JsonSchema)]
pub struct SellerReputation {
    #[schemars(range(max = 100))]
    score: u8,
    /// How many escrows it is made of.
    basis: u32,
}

/// What is for sale. It never changes, but for the figures of its sales.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    id: String,
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: String,
    #[schemars(length(min = 1, max = MAX_DESCRIPTION))]
    description: String,
    #[schemars(regex(pattern = LOVELACE))]
    price_lovelace: String,
    /// Who sells; for instant sales also who is paid.
    #[schemars(regex(pattern = ADDRESS))]
    seller_address: String,
    #[schemars(length(min = 1))]
    modes: Vec<DeliveryMode>,
    /// SHA-256 of what the buyer receives.
    #[schemars(regex(pattern = HASH))]
    content_hash: String,
    /// A recording of what the prompt builds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(url)]
    preview_media: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Category>")]
    category: Option<String>,
    /// POSIX ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TIME))]
    created_at: Option<String>,
    /// Purchases that were not refunded.
    #[serde(skip_serializing_if = "Option::is_none")]
    sales: Option<u32>,
    /// Absent until the seller has a closed escrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    seller_reputation: Option<SellerReputation>,
}

/// What a seller offers.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewListing {
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: String,
    #[schemars(length(min = 1, max = MAX_DESCRIPTION))]
    description: String,
    /// At least 1,000,000; where `protected` is offered, 5,000,000.
    #[schemars(regex(pattern = LOVELACE))]
    price_lovelace: String,
    /// With a session, the session's owner sells instead.
    #[schemars(regex(pattern = "^addr_test1"))]
    seller_address: String,
    #[schemars(length(min = 1))]
    modes: Vec<DeliveryMode>,
    /// What is sold: at most 1 MiB of UTF-8. The catalogue never shows it.
    #[schemars(length(min = 1, max = MAX_CONTENT_BYTES))]
    content: String,
    /// An https address that ends in .mp4, .webm, .webp or .gif.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_PREVIEW_URL))]
    preview_media: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Category>")]
    category: Option<String>,
}

/// What a seller sells.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Creator {
    #[schemars(regex(pattern = ADDRESS))]
    address: String,
    /// The newest; the `Link` header leads to the next page.
    listings: Vec<Listing>,
    sales: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    seller_reputation: Option<SellerReputation>,
}

/// What became of a purchase.
#[derive(Serialize, JsonSchema)]
pub enum PurchaseStatus {
    FundsLocked,
    ResultSubmitted,
    RefundRequested,
    Disputed,
    WithdrawAuthorized,
    RefundAuthorized,
    #[serde(rename = "withdrawing")]
    Withdrawing,
    #[serde(rename = "settled")]
    Settled,
    #[serde(rename = "withdrawn")]
    Withdrawn,
    #[serde(rename = "refunded")]
    Refunded,
    #[serde(rename = "closed")]
    Closed,
}

/// What the chain shows of a purchase.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PurchaseEvent {
    /// A status, or `creator_paid`.
    status: String,
    #[schemars(regex(pattern = HASH))]
    tx_hash: String,
    /// POSIX ms.
    #[schemars(regex(pattern = TIME))]
    at: String,
}

/// When an escrow's parties may act, POSIX ms each.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EscrowDeadlines {
    #[serde(skip_serializing_if = "Option::is_none")]
    pay_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit_result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlock: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_dispute_unlock: Option<String>,
}

/// The escrow of a protected purchase.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Escrow {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = HASH))]
    input_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = HASH))]
    result_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = HASH))]
    identifier_from_purchaser: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlines: Option<EscrowDeadlines>,
}

/// What a buyer found when comparing what was delivered with what was listed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    Ok,
    Mismatch,
    NoResultYet,
}

/// A wallet, as CIP-30 describes it, and how its owner wants to pay.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewPaymentDraft {
    /// Look the output that pays up first, so that a wallet on another network is told before it signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check_inputs: Option<bool>,
    mode: DeliveryMode,
    /// `getChangeAddress()`: hexadecimal, or bech32.
    #[schemars(length(min = 1))]
    change_address: String,
    /// `getUtxos()`: hexadecimal of CBOR.
    utxos: Vec<String>,
    /// `getCollateral()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collateral: Option<Vec<String>>,
    /// `getUsedAddresses()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
    /// `h` of the extension `cardano-request-commitment`, for `GET /listings/{id}/unlock`: the transaction's metadata
    /// carry it. The salt stays with the client until it pays.
    #[schemars(regex(pattern = HASH))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commitment: Option<String>,
}

/// A payment for a wallet to sign: nothing of it is kept.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentDraft {
    /// Hexadecimal of the CBOR, without signatures.
    transaction: String,
    #[schemars(regex(pattern = HASH))]
    tx_hash: String,
    /// Hashes of the keys that have to sign, hexadecimal.
    signers: Vec<String>,
    /// An x402 PaymentPayload that lacks `payload.transaction`: base64 of the signed transaction.
    payment: serde_json::Map<String, Value>,
    /// What is paid, locked, spent on fees and given back.
    summary: serde_json::Map<String, Value>,
    /// The same in words, for whoever signs.
    words: Vec<String>,
}

/// What to do with a protected purchase; with it, the wallet as for a payment.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewActionDraft {
    /// One of those that the answer without it lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    utxos: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collateral: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
}

/// A purchase. It exists once its transaction is in a block.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Purchase {
    /// The payment's transaction (instant), or the lock's (protected).
    #[schemars(regex(pattern = HASH))]
    id: String,
    listing_id: String,
    mode: DeliveryMode,
    #[schemars(regex(pattern = ADDRESS))]
    buyer_address: String,
    #[schemars(regex(pattern = HASH))]
    tx_hash: String,
    status: PurchaseStatus,
    /// Its timeline, as the chain has it.
    events: Vec<PurchaseEvent>,
    /// Of protected purchases.
    #[serde(skip_serializing_if = "Option::is_none")]
    escrow: Option<Escrow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<Verification>,
}

/// A buyer's verdict.
#[derive(Deserialize, JsonSchema)]
pub struct Verdict {
    verification: Verification,
}

/// Who wants to sign in.
#[derive(Deserialize, JsonSchema)]
pub struct ChallengeRequest {
    /// Bech32, or hexadecimal as CIP-30 gives it.
    #[schemars(length(min = 1))]
    address: String,
}

/// What the wallet is to sign (CIP-30 `signData`).
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    #[schemars(regex(pattern = ADDRESS))]
    owner: String,
    #[schemars(regex(pattern = HASH))]
    digest: String,
    /// What the digest is of: SHA-256 of `service:signin:v1` LF owner LF nonce.
    #[schemars(regex(pattern = HASH))]
    nonce: String,
    /// POSIX ms.
    expires_at: u64,
}

/// A signed challenge.
#[derive(Deserialize, JsonSchema)]
pub struct SignIn {
    #[schemars(length(min = 1))]
    owner: String,
    /// COSE_Key, hexadecimal.
    #[schemars(length(min = 1))]
    key: String,
    /// COSE_Sign1, hexadecimal.
    #[schemars(length(min = 1))]
    signature: String,
}

/// A session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// For `Authorization: Bearer`.
    token: String,
    /// POSIX ms.
    expires_at: u64,
    account: SessionAccount,
}

/// Whose session it is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAccount {
    owner: String,
    #[schemars(regex(pattern = ADDRESS))]
    wallet_address: String,
}

/// The wallet that the service holds for an account.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wallet {
    #[schemars(regex(pattern = ADDRESS))]
    address: String,
    #[schemars(regex(pattern = LOVELACE))]
    balance_lovelace: String,
}

/// What may be spent from it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    #[schemars(regex(pattern = LOVELACE))]
    max_per_payment_lovelace: String,
    #[schemars(regex(pattern = LOVELACE))]
    daily_budget_lovelace: String,
    /// Since midnight UTC.
    #[schemars(regex(pattern = LOVELACE))]
    spent_today_lovelace: String,
}

/// An account.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    owner: String,
    wallet: Wallet,
    limits: Limits,
    /// Bought from the owner's wallet or the service wallet.
    purchases: Vec<Purchase>,
    listings: Vec<Listing>,
    sales: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    seller_reputation: Option<SellerReputation>,
}

/// What to buy, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Buy {
    #[schemars(length(min = 1))]
    listing_id: String,
    mode: DeliveryMode,
}

/// What was bought.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bought {
    purchase: Purchase,
    content: String,
    /// Whether nothing was paid now.
    already_owned: bool,
}

/// New limits, in whole tADA.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewLimits {
    #[schemars(range(min = 1, max = MAX_PER_PAYMENT_ADA))]
    max_per_payment_ada: u32,
    /// At least `maxPerPaymentAda`.
    #[schemars(range(min = 1, max = MAX_DAILY_BUDGET_ADA))]
    daily_budget_ada: u32,
}

/// Limits as they hold now.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSet {
    #[schemars(regex(pattern = LOVELACE))]
    max_per_payment_lovelace: String,
    #[schemars(regex(pattern = LOVELACE))]
    daily_budget_lovelace: String,
}

/// What was sent to the owner.
#[derive(Serialize, JsonSchema)]
pub struct Withdrawal {
    #[schemars(regex(pattern = HASH))]
    tx: String,
    #[schemars(regex(pattern = LOVELACE))]
    lovelace: String,
}

/// An agent that an owner let in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    id: String,
    client_id: String,
    client_name: String,
    redirect_uri: String,
    /// `mcp`, or `mcp:read`: it cannot buy.
    scope: String,
    #[schemars(regex(pattern = TIME))]
    created_at: String,
    #[schemars(regex(pattern = TIME))]
    last_used_at: String,
    #[schemars(regex(pattern = LOVELACE))]
    spent_today_lovelace: String,
}

/// OAuth's form of an error (RFC 6749, 5.2).
#[derive(Serialize, JsonSchema)]
pub struct OAuthError {
    /// The code.
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_description: Option<String>,
}

/// A program that wants to become a client (RFC 7591). Other fields are ignored.
#[derive(Deserialize, JsonSchema)]
pub struct Registration {
    /// https, loopback, or a program's own scheme; others beside them are left out.
    #[schemars(length(min = 1, max = MAX_REDIRECT_URIS))]
    redirect_uris: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_CLIENT_NAME))]
    client_name: Option<String>,
}

/// A client.
#[derive(Serialize, JsonSchema)]
pub struct Registered {
    client_id: String,
    client_id_issued_at: u64,
    client_name: String,
    redirect_uris: Vec<String>,
    grant_types: Vec<String>,
    response_types: Vec<String>,
    scope: String,
    token_endpoint_auth_method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks: Option<Value>,
}

/// What the owner's wallet is to sign.
#[derive(Serialize, JsonSchema)]
pub struct ConnectChallenge {
    #[schemars(regex(pattern = ADDRESS))]
    owner: String,
    #[schemars(regex(pattern = HASH))]
    digest: String,
    /// What the digest is of: SHA-256 of `service:connect:v1` LF owner LF nonce.
    #[schemars(regex(pattern = HASH))]
    nonce: String,
}

/// Who lets an agent in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// The owner of a wallet: with `owner`, `key` and `signature`.
    Wallet,
    /// Nobody: the shared demo wallet.
    Demo,
}

/// An owner's answer on the consent page.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The sealed request that the page carries.
    request: String,
    mode: ApprovalMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// COSE_Key, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// COSE_Sign1, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[schemars(range(min = 1, max = MAX_PER_PAYMENT_ADA))]
    max_per_payment_ada: u32,
    #[schemars(range(min = 1, max = MAX_DAILY_BUDGET_ADA))]
    daily_budget_ada: u32,
    /// An account that has limits keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_limits: Option<bool>,
    /// `mcp`, or `mcp:read` for less than was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

/// An agent that was let in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// Where the page goes now.
    redirect: String,
    #[schemars(regex(pattern = ADDRESS))]
    agent_address: String,
    owner: String,
}

/// A token that its client needs no more (RFC 7009).
#[derive(Deserialize, JsonSchema)]
pub struct Revocation {
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
}

/// A code or a refresh token (RFC 6749, 4.1.3 and 6; RFC 7636; RFC 8707).
#[derive(Deserialize, JsonSchema)]
pub struct TokenRequest {
    /// `authorization_code` or `refresh_token`.
    grant_type: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code_verifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
}

/// What an agent presents from now on.
#[derive(Serialize, JsonSchema)]
pub struct Tokens {
    access_token: String,
    token_type: String,
    /// Seconds.
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

/// A message of MCP (JSON-RPC 2.0).
#[derive(Deserialize, JsonSchema)]
pub struct RpcMessage {
    #[schemars(regex(pattern = r"^2\.0$"))]
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<RpcId>,
    /// `initialize`, `tools/list`, `tools/call`, ...
    method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<serde_json::Map<String, Value>>,
}

/// The name of a call.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RpcId {
    Number(i64),
    Text(String),
}

/// The service runs, and for which network.
#[derive(Serialize, JsonSchema)]
pub struct Health {
    ok: bool,
    #[schemars(regex(pattern = "^preprod$"))]
    network: String,
}

/// A way to pay, as x402's `PaymentRequirements`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequirements {
    scheme: String,
    network: String,
    #[schemars(regex(pattern = LOVELACE))]
    amount: String,
    asset: String,
    #[schemars(regex(pattern = ADDRESS))]
    pay_to: String,
    max_timeout_seconds: u32,
    /// What the transfer method adds.
    extra: serde_json::Map<String, Value>,
}

/// What x402 clients may use here.
#[derive(Serialize, JsonSchema)]
pub struct Supported {
    kinds: Vec<SupportedKind>,
    extensions: Vec<String>,
    signers: serde_json::Map<String, Value>,
}

/// One way to pay.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedKind {
    #[serde(rename = "x402Version")]
    x402_version: u8,
    scheme: String,
    network: String,
    extra: serde_json::Map<String, Value>,
}

/// A page of what can be paid for.
#[derive(Serialize, JsonSchema)]
pub struct DiscoveryPage {
    #[serde(rename = "x402Version")]
    x402_version: u8,
    items: Vec<DiscoveredResource>,
    pagination: Pagination,
}

/// Where a page is.
#[derive(Serialize, JsonSchema)]
pub struct Pagination {
    limit: u32,
    offset: u32,
    total: u64,
}

/// What can be paid for and answers a question.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    #[serde(rename = "x402Version")]
    x402_version: u8,
    resources: Vec<DiscoveredResource>,
    /// Whether more match.
    partial_results: bool,
    pagination: SearchPagination,
}

/// What is there and null: other fields that may be missing are never null.
fn text_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

/// How to go on after a page of a search.
#[derive(Serialize, JsonSchema)]
pub struct SearchPagination {
    /// So many are on this page.
    limit: u32,
    /// For the next page; null where this is the last.
    #[schemars(schema_with = "text_or_null")]
    cursor: Option<String>,
}

/// What can be paid for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredResource {
    #[schemars(url)]
    resource: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "x402Version")]
    x402_version: u8,
    accepts: Vec<PaymentRequirements>,
    /// ISO 8601, UTC.
    last_updated: String,
    description: String,
    mime_type: String,
    service_name: String,
    tags: Vec<String>,
    extensions: serde_json::Map<String, Value>,
}

/// Any JSON object: its form is that of another document.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Document(serde_json::Map<String, Value>);
