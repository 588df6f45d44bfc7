//! Discovery metadata of the authorization server and of the protected resource, which is the MCP endpoint.

use serde_json::{Value, json};

use super::{Authority, Scope};

impl Authority {
    /// Returns the metadata of the protected resource (RFC 9728). The service serves this document at two addresses.
    #[must_use]
    pub fn resource_metadata(&self) -> Value {
        json!({
            "resource": self.resource(),
            "authorization_servers": [self.issuer()],
            "scopes_supported": Scope::EVERY,
            "bearer_methods_supported": ["header"],
            "resource_name": "Surety",
        })
    }

    /// Returns the authorization server's metadata (RFC 8414, RFC 9207, RFC 9728 section 4, client id metadata
    /// documents).
    #[must_use]
    pub fn server_metadata(&self) -> Value {
        let issuer = self.issuer();
        // On loopback, published client documents cannot be fetched. Stock clients that see the field
        // `client_id_metadata_document_supported` try nothing else, so it is set only on public servers.
        let documents = issuer.starts_with("https://");
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/oauth/authorize"),
            "token_endpoint": self.token_endpoint(),
            "revocation_endpoint": format!("{issuer}/oauth/revoke"),
            "revocation_endpoint_auth_methods_supported": ["none"],
            "registration_endpoint": format!("{issuer}/oauth/register"),
            "scopes_supported": Scope::EVERY,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["RS256", "ES256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": documents,
            "protected_resources": [self.resource()],
        })
    }

    /// Returns the value of the header `WWW-Authenticate` (RFC 6750 section 3, RFC 9728 section 5.1). `error` is
    /// `invalid_token` for a 401 to a request with a token, `insufficient_scope` for a 403, and `None` for a request
    /// without a token.
    #[must_use]
    pub fn www_authenticate(&self, error: Option<&str>) -> String {
        let error = error.map(|error| format!("error=\"{error}\", ")).unwrap_or_default();
        let (issuer, scope) = (self.issuer(), Scope::All.as_str());
        let metadata = format!("{issuer}/.well-known/oauth-protected-resource/mcp");
        format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{scope}\"")
    }
}
