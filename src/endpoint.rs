//! The paths of the API: one table of which path takes which methods.

use worker::Method;

/// A path that exists, with what it names.
#[derive(Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/health`
    Health,
    /// `/listings`
    Listings,
    /// `/listings/{id}`
    Listing(String),
    /// `/listings/{id}/unlock`
    Unlock(String),
    /// `/listings/{id}/payment-draft`
    PaymentDraft(String),
    /// `/creators/{address}`
    Creator(String),
    /// `/purchases`
    Purchases,
    /// `/purchases/{id}`
    Purchase(String),
    /// `/purchases/{id}/verification`
    Verification(String),
    /// `/purchases/{id}/action-draft`
    ActionDraft(String),
    /// `/auth/challenge`
    Challenge,
    /// `/auth/verify`
    SignIn,
    /// `/auth/logout`
    SignOut,
    /// `/me`
    Me,
    /// `/me/agent-limits`
    AgentLimits,
    /// `/me/buy`
    Buy,
    /// `/me/wallet/withdraw`
    Withdraw,
    /// `/me/purchases/{id}/content`
    BoughtContent(String),
    /// `/me/agents`
    Agents,
    /// `/me/agents/{id}`
    Agent(String),
    /// `/mcp`
    Mcp,
    /// `/mcp/open`
    OpenMcp,
    /// `/.well-known/oauth-protected-resource`, with `/mcp` or without
    ResourceMetadata,
    /// `/.well-known/oauth-authorization-server`
    ServerMetadata,
    /// `/oauth/register`
    Register,
    /// `/oauth/authorize`
    Authorize,
    /// `/oauth/challenge`
    ConnectChallenge,
    /// `/oauth/approve`
    Approve,
    /// `/oauth/token`
    Token,
    /// `/assets/{name}`
    Asset(String),
    /// `/supported`
    Supported,
    /// `/discovery/resources`
    DiscoveryResources,
    /// `/.well-known/did.json`
    DidDocument,
    /// `/robots.txt`
    Robots,
    /// `/sitemap.xml`
    Sitemap,
    /// `/llms.txt`
    Llms,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved {
    Route(Endpoint),
    /// `OPTIONS` of a path with these methods.
    Preflight(&'static str),
    /// The path takes only these methods.
    WrongMethod(&'static str),
    /// No such path.
    Unknown,
}

const POST: &str = "POST, OPTIONS";
const GET: &str = "GET, HEAD, OPTIONS";
const GET_POST: &str = "GET, HEAD, POST, OPTIONS";

impl Endpoint {
    fn parse(path: &str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let (first, second, third) = (segments.next()?, segments.next(), segments.next());
        let (fourth, more) = (segments.next(), segments.next());
        if let ("me", Some("purchases"), Some(id), Some("content"), None) = (first, second, third, fourth, more)
            && !id.is_empty()
        {
            return Some(Self::BoughtContent(id.to_owned()));
        }
        // An empty name is no name: `/listings/` is not a listing.
        if fourth.is_some() || second == Some("") {
            return None;
        }
        match (first, second, third) {
            ("health", None, None) => Some(Self::Health),
            ("listings", None, None) => Some(Self::Listings),
            ("listings", Some(id), None) => Some(Self::Listing(id.to_owned())),
            ("listings", Some(id), Some("unlock")) => Some(Self::Unlock(id.to_owned())),
            ("listings", Some(id), Some("payment-draft")) => Some(Self::PaymentDraft(id.to_owned())),
            ("purchases", None, None) => Some(Self::Purchases),
            ("purchases", Some(id), None) => Some(Self::Purchase(id.to_owned())),
            ("purchases", Some(id), Some("verification")) => Some(Self::Verification(id.to_owned())),
            ("purchases", Some(id), Some("action-draft")) => Some(Self::ActionDraft(id.to_owned())),
            ("creators", Some(address), None) => Some(Self::Creator(address.to_owned())),
            ("auth", Some("challenge"), None) => Some(Self::Challenge),
            ("auth", Some("verify"), None) => Some(Self::SignIn),
            ("auth", Some("logout"), None) => Some(Self::SignOut),
            ("me", None, None) => Some(Self::Me),
            ("me", Some("buy"), None) => Some(Self::Buy),
            ("me", Some("wallet"), Some("withdraw")) => Some(Self::Withdraw),
            ("me", Some("agent-limits"), None) => Some(Self::AgentLimits),
            ("me", Some("agents"), None) => Some(Self::Agents),
            ("me", Some("agents"), Some(id)) => Some(Self::Agent(id.to_owned())),
            ("mcp", None, None) => Some(Self::Mcp),
            ("mcp", Some("open"), None) => Some(Self::OpenMcp),
            (".well-known", Some("oauth-protected-resource"), None | Some("mcp")) => Some(Self::ResourceMetadata),
            (".well-known", Some("oauth-authorization-server"), None) => Some(Self::ServerMetadata),
            ("oauth", Some("register"), None) => Some(Self::Register),
            ("oauth", Some("authorize"), None) => Some(Self::Authorize),
            ("oauth", Some("challenge"), None) => Some(Self::ConnectChallenge),
            ("oauth", Some("approve"), None) => Some(Self::Approve),
            ("oauth", Some("token"), None) => Some(Self::Token),
            ("supported", None, None) => Some(Self::Supported),
            ("discovery", Some("resources"), None) => Some(Self::DiscoveryResources),
            (".well-known", Some("did.json"), None) => Some(Self::DidDocument),
            ("robots.txt", None, None) => Some(Self::Robots),
            ("sitemap.xml", None, None) => Some(Self::Sitemap),
            ("llms.txt", None, None) => Some(Self::Llms),
            ("assets", Some(name), None) => Some(Self::Asset(name.to_owned())),
            _ => None,
        }
    }

    const fn allowed(&self) -> &'static str {
        match self {
            Self::Health | Self::Listing(_) | Self::Creator(_) | Self::Purchases | Self::Purchase(_) => GET,
            Self::Me | Self::BoughtContent(_) | Self::Agents => GET,
            Self::ResourceMetadata | Self::ServerMetadata | Self::Authorize | Self::ConnectChallenge => GET,
            Self::Asset(_) | Self::Robots | Self::Sitemap | Self::Llms => GET,
            Self::Supported | Self::DiscoveryResources | Self::DidDocument => GET,
            Self::Mcp | Self::OpenMcp | Self::Register | Self::Approve | Self::Token => POST,
            Self::Agent(_) => "DELETE, OPTIONS",
            // A HEAD could not carry a paid answer's body: paying for nothing is not offered.
            Self::Unlock(_) => "GET, OPTIONS",
            Self::Listings => GET_POST,
            Self::Verification(_) | Self::Challenge | Self::SignIn | Self::SignOut | Self::Buy | Self::Withdraw => POST,
            Self::PaymentDraft(_) | Self::ActionDraft(_) => POST,
            Self::AgentLimits => "PUT, OPTIONS",
        }
    }
}

/// Finds the route of a method and a path.
pub fn resolve(method: &Method, path: &str) -> Resolved {
    let Some(endpoint) = Endpoint::parse(path) else {
        return Resolved::Unknown;
    };
    let allowed = endpoint.allowed();
    if *method == Method::Options {
        return Resolved::Preflight(allowed);
    }
    let name = method.to_string();
    if allowed.split(", ").any(|allowed| allowed == name) {
        Resolved::Route(endpoint)
    } else {
        Resolved::WrongMethod(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_methods_and_no_others() {
        assert_eq!(resolve(&Method::Get, "/health"), Resolved::Route(Endpoint::Health));
        assert_eq!(resolve(&Method::Head, "/listings"), Resolved::Route(Endpoint::Listings));
        assert_eq!(resolve(&Method::Delete, "/listings"), Resolved::WrongMethod(GET_POST));
        assert_eq!(resolve(&Method::Options, "/listings/x"), Resolved::Preflight(GET));
    }

    #[test]
    fn other_paths_do_not_exist() {
        for path in [
            "",
            "/",
            "/healthz",
            "/health/",
            "/listings/",
            "/listings//unlock",
            "/listings/a/b/c",
            "//listings",
            "/Health",
            "/creators/",
            "/purchases/",
            "/me/",
            "/me/purchases//content",
        ] {
            assert_eq!(resolve(&Method::Get, path), Resolved::Unknown, "{path}");
        }
    }
}
