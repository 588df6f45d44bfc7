//! Types for the sign-in of agents by OAuth 2.1 with PKCE. Fields have the names of the RFCs.

use std::fmt;

use cardano::{Address, ContentHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of redirect URIs of a client. Editors register about ten.
pub const MAX_REDIRECT_URIS: usize = 32;
/// Maximum length of a client's name in characters.
pub const MAX_CLIENT_NAME: usize = 100;

macro_rules! scopes {
    ($($(#[$may:meta])* $scope:ident $name:literal;)+) => {
        /// Permissions of an agent (RFC 6749, section 3.3), from the widest to the narrowest.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        pub enum Scope {
            $($(#[$may])* #[serde(rename = $name)] $scope,)+
        }

        impl Scope {
            /// List of all scopes.
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
    /// Permission to use every tool.
    All "mcp";
    /// Permission to search, and to view listings and purchases, but not to move money.
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

    /// Determines the scope to grant from a client's list of requested scopes. Unknown names (`openid`,
    /// `offline_access`, a client's own) are ignored. A list without any known name, like a missing list, requests the
    /// widest scope. The owner sees the resulting scope on the consent page, and the client gets its name with the
    /// tokens.
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
    /// The response type is not supported: only `code` is.
    UnsupportedResponseType,
    /// The requested resource is not this service.
    InvalidTarget,
    /// The redirect URI is not allowed.
    InvalidRedirectUri,
    /// A value of the client's metadata is not allowed.
    InvalidClientMetadata,
    /// The service failed temporarily, so the request was neither granted nor denied.
    TemporarilyUnavailable,
}

impl OAuthErrorCode {
    /// Returns the HTTP status of an answer with this code.
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
    /// Error code for programs.
    pub error: OAuthErrorCode,
    /// Description for people. Never repeats the request's contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

/// A client registration (RFC 7591). Fields that are not listed here are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Registration {
    /// Redirect URIs: https, loopback, or a program's own scheme. URIs of other kinds in the list are ignored.
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
    /// Time of the registration, in POSIX seconds.
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

/// A digest that the owner's wallet must sign to connect an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConnectChallenge {
    /// Address of the owner, in bech32.
    pub owner: Address,
    /// Digest to sign: SHA-256 of the text `service:connect:v1`, a line feed, the owner's address, a line feed, and the
    /// nonce.
    pub digest: ContentHash,
    /// Random nonce, which is part of the signed digest.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub nonce: String,
}

/// The kind of owner that grants access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// The owner of a wallet. The fields `owner`, `key` and `signature` are required.
    Wallet,
    /// No owner: the agent gets access to the shared demo wallet, which needs no signature.
    Demo,
}

/// An owner's answer on the consent page that connects an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Sealed consent request, copied from the page.
    pub request: String,
    /// Kind of owner that grants access.
    pub mode: ApprovalMode,
    /// Address of the owner's wallet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The signature's public key: a COSE_Key in hexadecimal, as CIP-30 `signData` returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The signature: a COSE_Sign1 in hexadecimal, as CIP-30 `signData` returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Maximum amount per purchase.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_PER_PAYMENT_ADA)))]
    pub max_per_payment_ada: u32,
    /// Maximum amount per UTC day.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = crate::MAX_DAILY_BUDGET_ADA)))]
    pub daily_budget_ada: u32,
    /// Price above which agents' purchases need the owner's approval. With 0, every purchase needs it. With 100, none
    /// does, because no purchase may cost more. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = crate::MAX_PER_PAYMENT_ADA)))]
    pub ask_above_ada: Option<u32>,
    /// `true` to let agents buy only with buyer protection. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_only: Option<bool>,
    /// Minimum reputation of sellers from whom agents may buy. 0 allows every seller. A higher minimum also excludes
    /// sellers without a reputation. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = crate::MAX_REPUTATION)))]
    pub min_reputation: Option<u32>,
    /// `true` to keep the limits of an existing account, so that the limits in this answer are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_limits: Option<bool>,
    /// Scope to grant, if the owner grants less than the client requested. Absent: the requested scope is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// Access that an owner has granted to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    /// The client's redirect URI with the authorization code, to which the page must redirect the browser.
    pub redirect: String,
    /// Address of the service wallet, to which the owner sends funds.
    pub agent_address: Address,
    /// Address of the account's owner.
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

/// Tokens for an agent (RFC 6749, section 5.1). They are secret, so the answer has `Cache-Control: no-store`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tokens {
    /// Access token for `/mcp`.
    pub access_token: String,
    /// Always `Bearer`.
    pub token_type: String,
    /// Lifetime of the access token in seconds.
    pub expires_in: u64,
    /// Refresh token, which can be exchanged once for new tokens.
    pub refresh_token: String,
    /// Scope that the owner granted, which may differ from the requested scope.
    pub scope: Scope,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(..)")
    }
}
