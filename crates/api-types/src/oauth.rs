//! Sign-in of agents: OAuth 2.1 with PKCE. Names are those of the RFCs.

use std::fmt;

use cardano::{Address, ContentHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of redirect URIs of a client. Editors register about ten.
pub const MAX_REDIRECT_URIS: usize = 32;
/// Maximum number of characters of a client's name.
pub const MAX_CLIENT_NAME: usize = 100;

macro_rules! scopes {
    ($($(#[$may:meta])* $scope:ident $name:literal;)+) => {
        /// Permissions of an agent (RFC 6749, section 3.3), from most to least.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        pub enum Scope {
            $($(#[$may])* #[serde(rename = $name)] $scope,)+
        }

        impl Scope {
            /// All scopes.
            pub const EVERY: &'static [Self] = &[$(Self::$scope),+];

            /// Returns the scope's name.
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
    /// Everything that the tools offer.
    All "mcp";
    /// Searching, and viewing listings and purchases: nothing that moves money.
    Read "mcp:read";
}

impl Scope {
    /// Returns whether an agent with this scope may move money.
    #[must_use]
    pub const fn may_spend(self) -> bool {
        match self {
            Self::All => true,
            Self::Read => false,
        }
    }

    /// Parses a requested list of scopes. Unknown names (`openid`, `offline_access`, a client's own) are ignored. A
    /// list without any known name requests everything, as an absent list does; the consent page and the answer name
    /// the scope.
    #[must_use]
    pub fn asked(list: &str) -> Self {
        let named = |scope: &&Self| list.split(' ').any(|one| one == scope.as_str());
        Self::EVERY.iter().find(named).copied().unwrap_or(Self::All)
    }
}

/// Error codes of RFC 6749 (sections 4.1.2.1, 5.2), RFC 7591 (section 3.2.2) and RFC 8707 (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OAuthErrorCode {
    /// A parameter is missing, repeated, too long or malformed.
    InvalidRequest,
    /// The client is unknown or did not authenticate.
    InvalidClient,
    /// The code or refresh token is unknown, expired, used, revoked, or another client's.
    InvalidGrant,
    /// The grant type is not supported.
    UnsupportedGrantType,
    /// The response type is not `code`.
    UnsupportedResponseType,
    /// The resource is not this service's.
    InvalidTarget,
    /// A redirect URI may not be registered.
    InvalidRedirectUri,
    /// Other client metadata may not be registered.
    InvalidClientMetadata,
    /// A fault of the service; nothing was decided.
    TemporarilyUnavailable,
}

impl OAuthErrorCode {
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

impl fmt::Display for OAuthErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An OAuth error (RFC 6749, section 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OAuthError {
    /// For programs.
    pub error: OAuthErrorCode,
    /// For people. Never repeats what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

/// A client registration (RFC 7591). Other fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Registration {
    /// Redirect URIs: https, loopback, or a program's own scheme. Others in the list are ignored.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_REDIRECT_URIS)))]
    pub redirect_uris: Vec<String>,
    /// Name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_CLIENT_NAME)))]
    pub client_name: Option<String>,
}

/// A registered client (RFC 7591, section 3.2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "RFC 7591 names them")]
pub struct Registered {
    pub client_id: String,
    /// POSIX seconds.
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

/// A digest that the owner's wallet must sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConnectChallenge {
    /// Address of the owner, in bech32.
    pub owner: Address,
    /// Digest to sign: SHA-256 of `service:connect:v1` LF owner LF nonce.
    pub digest: ContentHash,
    /// Random nonce, part of the digest.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub nonce: String,
}

/// The kind of owner that grants access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// The owner of a wallet, with `owner`, `key` and `signature`.
    Wallet,
    /// Nobody: the shared demo wallet.
    Demo,
}

/// An owner's answer on the consent page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Sealed request from the page.
    pub request: String,
    /// Kind of owner.
    pub mode: ApprovalMode,
    /// Address of the wallet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// COSE_Key, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// COSE_Sign1, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Maximum per purchase.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_PER_PAYMENT_ADA)))]
    pub max_per_payment_ada: u32,
    /// Maximum per UTC day.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_DAILY_BUDGET_ADA)))]
    pub daily_budget_ada: u32,
    /// Agents' purchases above this amount need the owner's approval. 0 asks for every purchase, 100 for none. Absent:
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = crate::MAX_PER_PAYMENT_ADA)))]
    pub ask_above_ada: Option<u32>,
    /// `true` to keep the limits of an account that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_limits: Option<bool>,
    /// Scope to grant, if less than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// A granted access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// The client's redirect URI with the code, to which the page must go.
    pub redirect: String,
    /// Address of the service wallet to fund.
    pub agent_address: Address,
    /// Address of the account.
    pub owner: String,
}

/// Revocation of a token (RFC 7009).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "RFC 7009 names them")]
pub struct Revocation {
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// A token request with a code or a refresh token (RFC 6749, sections 4.1.3 and 6; RFC 7636; RFC 8707).
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

/// Tokens for an agent (RFC 6749, section 5.1). Secret: `Cache-Control: no-store`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tokens {
    /// Access token for `/mcp`.
    pub access_token: String,
    /// Always `Bearer`.
    pub token_type: String,
    /// Lifetime in seconds.
    pub expires_in: u64,
    /// Refresh token for the next tokens.
    pub refresh_token: String,
    /// Scope that the owner granted, whatever was requested.
    pub scope: Scope,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(..)")
    }
}
