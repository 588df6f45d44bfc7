//! Agents' sign-in: OAuth 2.1 with PKCE. What the RFCs name has their names.

use std::fmt;

use cardano::{Address, ContentHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Redirect URIs of one client. Editors register about ten.
pub const MAX_REDIRECT_URIS: usize = 32;
/// Characters of a client's name.
pub const MAX_CLIENT_NAME: usize = 100;

macro_rules! scopes {
    ($($(#[$may:meta])* $scope:ident $name:literal;)+) => {
        /// What an agent may do (RFC 6749 section 3.3): most first, each more than the next.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        pub enum Scope {
            $($(#[$may])* #[serde(rename = $name)] $scope,)+
        }

        impl Scope {
            /// Every scope.
            pub const EVERY: &'static [Self] = &[$(Self::$scope),+];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$scope => $name,)+
                }
            }
        }
    };
}

scopes! {
    /// Everything that the tools do.
    All "mcp";
    /// Search, look, and see what was bought: nothing that moves money.
    Read "mcp:read";
}

impl Scope {
    /// Whether an agent with it may move money.
    #[must_use]
    pub const fn may_spend(self) -> bool {
        match self {
            Self::All => true,
            Self::Read => false,
        }
    }

    /// What a list of scopes asks for. Unknown names (`openid`, `offline_access`, a client's own) are left out. A list
    /// without a known name asks for everything, as an absent list does. The consent page and the answer say it.
    #[must_use]
    pub fn asked(list: &str) -> Self {
        let named = |scope: &&Self| list.split(' ').any(|one| one == scope.as_str());
        Self::EVERY.iter().find(named).copied().unwrap_or(Self::All)
    }
}

/// The codes of RFC 6749 (sections 4.1.2.1, 5.2), RFC 7591 (section 3.2.2) and RFC 8707 (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// A parameter is missing, repeated, too long or malformed.
    InvalidRequest,
    /// Unknown client, or one that did not prove who it is.
    InvalidClient,
    /// The code or refresh token is unknown, over, used, revoked, or another client's.
    InvalidGrant,
    /// Not a grant that we offer.
    UnsupportedGrantType,
    /// Not `code`.
    UnsupportedResponseType,
    /// A resource that is not ours.
    InvalidTarget,
    /// A redirect URI that may not be registered.
    InvalidRedirectUri,
    /// Something else that may not be registered.
    InvalidClientMetadata,
    /// Ours to repair; nothing was decided.
    TemporarilyUnavailable,
}

impl ErrorCode {
    /// The HTTP status of an answer with this code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidClient => 401,
            Self::TemporarilyUnavailable => 503,
            _ => 400,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// OAuth's form of an error (RFC 6749, 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OAuthError {
    /// For programs.
    pub error: ErrorCode,
    /// For people. Never repeats what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

/// A program that wants to become a client (RFC 7591). Other fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Registration {
    /// https, loopback, or a program's own scheme; others beside them are left out.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_REDIRECT_URIS)))]
    pub redirect_uris: Vec<String>,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_CLIENT_NAME)))]
    pub client_name: Option<String>,
}

/// A client (RFC 7591, 3.2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "RFC 7591 names them")]
pub struct Registered {
    pub client_id: String,
    /// Seconds since 1970.
    pub client_id_issued_at: u64,
    pub client_name: String,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<String>,
    pub response_types: Vec<String>,
    pub scope: Scope,
    pub token_endpoint_auth_method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Value>,
}

/// What the owner's wallet is to sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConnectChallenge {
    /// The address, in bech32.
    pub owner: Address,
    /// What it signs.
    pub digest: ContentHash,
    /// What the digest is of: SHA-256 of `service:connect:v1` LF owner LF nonce.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub nonce: String,
}

/// Who lets an agent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// The owner of a wallet: with `owner`, `key` and `signature`.
    Wallet,
    /// No owner: the shared demo wallet.
    Demo,
}

/// An owner's answer on the consent page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The sealed request that the page carries.
    pub request: String,
    /// Who answers.
    pub mode: ApprovalMode,
    /// The wallet's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// COSE_Key, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// COSE_Sign1, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Per purchase.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_PER_PAYMENT_ADA)))]
    pub max_per_payment_ada: u32,
    /// Per UTC day.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_DAILY_BUDGET_ADA)))]
    pub daily_budget_ada: u32,
    /// What costs more waits for the owner's approval, if an agent buys it; 100 asks for none. Absent: it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = crate::MAX_PER_PAYMENT_ADA)))]
    pub ask_above_ada: Option<u32>,
    /// An account that has limits keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_limits: Option<bool>,
    /// For less than was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// An agent that was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// Where the page goes now: the client's redirect URI with the code.
    pub redirect: String,
    /// The service wallet to fund.
    pub agent_address: Address,
    /// The account.
    pub owner: String,
}

/// A token that its client needs no more (RFC 7009).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "RFC 7009 names them")]
pub struct Revocation {
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// A code or a refresh token (RFC 6749, 4.1.3 and 6; RFC 7636; RFC 8707).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "the RFCs name them")]
pub struct TokenRequest {
    /// `authorization_code` or `refresh_token`.
    pub grant_type: String,
    pub client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_verifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// What an agent presents from now on (RFC 6749, 5.1). Secret: `Cache-Control: no-store`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tokens {
    /// Opens `/mcp`.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: String,
    /// Seconds.
    pub expires_in: u64,
    /// For the next ones.
    pub refresh_token: String,
    /// What the owner allowed, whatever was asked for.
    pub scope: Scope,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(..)")
    }
}
