//! The table of the API's paths and methods. `{name}` stands for one non-empty segment.
//!
//! Each row is an endpoint with one method and its own handler. A path with several methods has several rows.

const GET: &[&str] = &["GET", "HEAD"];
const POST: &[&str] = &["POST"];
const PUT: &[&str] = &["PUT"];
const DELETE: &[&str] = &["DELETE"];

macro_rules! endpoints {
    ($($name:ident $(($param:ident))? $methods:ident $($template:literal)|+;)*) => {
        /// An endpoint of the API, with the values of its path's parameters.
        #[derive(Debug, PartialEq, Eq)]
        pub enum Endpoint {
            $($name $((endpoints!(@type $param)))?,)*
        }

        /// Returns the path templates of all endpoints, with the methods of each.
        #[cfg(test)]
        pub fn routes() -> Vec<(&'static str, &'static [&'static str])> {
            vec![$($(($template, $methods),)+)*]
        }

        impl Endpoint {
            /// Finds the endpoint of a method and path. If there is none, returns the methods that the path allows, an
            /// empty list for an unknown path.
            fn parse(method: &str, path: &str) -> Result<Self, Vec<&'static str>> {
                let mut taken = vec![];
                $(if let Some(_named) = [$(($template, const { fixed($template) })),+]
                    .iter()
                    .find_map(|(template, fixed)| if path.starts_with(fixed) { named(template, path) } else { None })
                {
                    if $methods.contains(&method) {
                        return Ok(Self::$name $((endpoints!(@value $param _named)))?);
                    }
                    taken.extend($methods);
                })*
                Err(taken)
            }

            /// Returns the endpoint's path template, with `{name}` in place of parameter values.
            pub const fn template(&self) -> &'static str {
                match self {
                    $(Self::$name $((endpoints!(@any $param)))? => {
                        let [first, ..] = [$($template),+];
                        first
                    })*
                }
            }
        }
    };
    (@type $param:ident) => { String };
    (@value $param:ident $named:ident) => { $named.to_owned() };
    (@any $param:ident) => { _ };
}

endpoints! {
    Home GET "/";
    Sell GET "/sell";
    Unlock(id) GET "/listings/{id}/unlock";
    UnlockByPost(id) POST "/listings/{id}/unlock";
    Listings GET "/listings";
    CreateListing POST "/listings";
    PaymentDraft(id) POST "/listings/{id}/payment-draft";
    Preview(id) GET "/listings/{id}/preview";
    Picture(id) GET "/listings/{id}/picture.png";
    Relist(id) POST "/listings/{id}/relist";
    Listing(id) GET "/listings/{id}";
    TakeOff(id) DELETE "/listings/{id}";
    Purchases GET "/purchases";
    Purchase(id) GET "/purchases/{id}";
    Statement(id) GET "/purchases/{id}/statement";
    Verification(id) POST "/purchases/{id}/verification";
    ActionDraft(id) POST "/purchases/{id}/action-draft";
    Creator(address) GET "/creators/{address}";
    Challenge POST "/auth/challenge";
    SignIn POST "/auth/verify";
    SignOut POST "/auth/logout";
    Me GET "/me";
    Buy POST "/me/buy";
    Withdraw POST "/me/wallet/withdraw";
    AgentLimits PUT "/me/agent-limits";
    BoughtContent(id) GET "/me/purchases/{id}/content";
    BuyerAction(id) POST "/me/purchases/{id}/actions";
    Agents GET "/me/agents";
    Agent(id) DELETE "/me/agents/{id}";
    PurchaseRequests GET "/me/requests";
    PurchaseRequest(id) GET "/me/requests/{id}";
    AnswerRequest(id) POST "/me/requests/{id}";
    Mcp POST "/mcp";
    OpenMcp POST "/mcp/open";
    ResourceMetadata GET "/.well-known/oauth-protected-resource" | "/.well-known/oauth-protected-resource/mcp";
    ServerMetadata GET "/.well-known/oauth-authorization-server" | "/.well-known/oauth-authorization-server/mcp";
    OpenidConfiguration GET "/.well-known/openid-configuration";
    Register POST "/oauth/register";
    Authorize GET "/oauth/authorize";
    ConnectChallenge GET "/oauth/challenge";
    Approve POST "/oauth/approve";
    Token POST "/oauth/token";
    Revoke POST "/oauth/revoke";
    TestWallet(folder) GET "/assets/{folder}/test-wallet.js";
    Supported GET "/supported";
    DiscoveryResources GET "/discovery/resources";
    DiscoverySearch GET "/discovery/search";
    DidDocument GET "/.well-known/did.json";
    Robots GET "/robots.txt";
    Sitemap GET "/sitemap.xml";
    Feed GET "/feed.xml";
    Llms GET "/llms.txt";
    OpenApi GET "/openapi.json";
    Docs GET "/docs";
    Health GET "/health";
    Ready GET "/health/ready";
    OperatorStatus GET "/operator/status";
}

/// Returns the literal prefix of a path template up to its first parameter, which rules out most templates without
/// parsing.
const fn fixed(template: &str) -> &str {
    let mut rest = template.as_bytes();
    while let [first, tail @ ..] = rest
        && *first != b'{'
    {
        rest = tail;
    }
    let (fixed, _) = template.split_at(template.len().saturating_sub(rest.len()));
    fixed
}

/// Returns the value of the template's parameter if the path matches the template, an empty string for a template
/// without parameters, or `None` if the path does not match.
fn named<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let (mut segments, mut named) = (path.split('/'), "");
    for expected in template.split('/') {
        let segment = segments.next()?;
        if expected.starts_with('{') && !segment.is_empty() {
            named = segment;
        } else if segment != expected {
            return None;
        }
    }
    segments.next().is_none().then_some(named)
}

/// Result of routing.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved<'a> {
    Route(Endpoint),
    /// An `OPTIONS` request for a path with these methods, as listed in `Allow`.
    Preflight(String),
    /// The path allows only these methods.
    WrongMethod(String),
    /// The path has trailing slashes, and this path without them exists.
    Moved(&'a str),
    /// The path does not exist.
    Unknown,
}

/// Finds the route of a method, in upper case, and a path.
pub fn resolve<'a>(method: &str, path: &'a str) -> Resolved<'a> {
    match Endpoint::parse(method, path) {
        Ok(endpoint) => Resolved::Route(endpoint),
        Err(mut taken) if !taken.is_empty() => {
            taken.push("OPTIONS");
            let allowed = taken.join(", ");
            if method == "OPTIONS" { Resolved::Preflight(allowed) } else { Resolved::WrongMethod(allowed) }
        }
        Err(_) => {
            let without = path.trim_end_matches('/');
            let exists = !matches!(Endpoint::parse(method, without), Err(taken) if taken.is_empty());
            if without != path && exists { Resolved::Moved(without) } else { Resolved::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_methods_and_no_others() {
        assert_eq!(resolve("GET", "/health"), Resolved::Route(Endpoint::Health));
        assert_eq!(resolve("HEAD", "/listings"), Resolved::Route(Endpoint::Listings));
        assert_eq!(resolve("DELETE", "/listings"), Resolved::WrongMethod("GET, HEAD, POST, OPTIONS".into()));
        assert_eq!(resolve("OPTIONS", "/listings/x"), Resolved::Preflight("GET, HEAD, DELETE, OPTIONS".into()));
        for method in ["QUERY", "TRACE", "get", ""] {
            assert_eq!(resolve(method, "/health"), Resolved::WrongMethod("GET, HEAD, OPTIONS".into()), "{method}");
        }
    }

    #[test]
    fn a_path_template_names_its_parameters() {
        let route = |path| match resolve("GET", path) {
            Resolved::Route(endpoint) => endpoint,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(route("/listings/lst_1/unlock"), Endpoint::Unlock("lst_1".into()));
        assert_eq!(route("/me/purchases/ab/content"), Endpoint::BoughtContent("ab".into()));
        assert_eq!(route("/.well-known/oauth-protected-resource/mcp"), Endpoint::ResourceMetadata);
    }

    #[test]
    fn a_path_allows_the_methods_of_its_rows_and_shadows_no_other_path() {
        let routes = routes();
        for (template, methods) in &routes {
            let own = methods.iter().filter(|method| **method != "HEAD");
            assert_eq!(own.count(), 1, "{template}: each method is a row of its own, with a handler");
            let path = template.replace(['{', '}'], "");
            let rows: Vec<_> = routes.iter().filter(|(other, _)| named(other, &path).is_some()).collect();
            assert!(rows.iter().all(|(other, _)| other == template), "{template} hides another");
            let taken: Vec<&str> = rows.iter().flat_map(|(_, methods)| *methods).copied().collect();
            for method in *methods {
                assert_eq!(taken.iter().filter(|taken| *taken == method).count(), 1, "{method} {template}");
                let endpoint = Endpoint::parse(method, &path).unwrap();
                assert!(template.starts_with(endpoint.template()), "{template}");
            }
            assert_eq!(resolve("OPTIONS", &path), Resolved::Preflight(format!("{}, OPTIONS", taken.join(", "))));
        }
    }

    #[test]
    fn slashes_at_the_end_lead_to_the_path_without_them() {
        for (path, without) in [
            ("/health/", "/health"),
            ("/listings//", "/listings"),
            ("/listings/lst_1/unlock/", "/listings/lst_1/unlock"),
        ] {
            assert_eq!(resolve("POST", path), Resolved::Moved(without));
        }
        assert_eq!(resolve("GET", "/"), Resolved::Route(Endpoint::Home));
    }

    #[test]
    fn unknown_paths_are_404() {
        for path in [
            "",
            "/healthz",
            "/listings//unlock",
            "/listings/a/b/c",
            "//listings",
            "//listings/",
            "//evil.example/",
            "//",
            "/Health",
            "/creators/",
            "/me/purchases//content",
        ] {
            assert_eq!(resolve("GET", path), Resolved::Unknown, "{path}");
        }
    }
}
