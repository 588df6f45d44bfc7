//! The paths of the API: one table of which path takes which methods. A `{name}` is one segment, never an empty one.
//!
//! Each row is an endpoint with one method, so that each method has a handler of its own. Where two rows share a path, each
//! says after `of` which methods the path takes in all: `Listings GET of GET_POST "/listings"`. Pages without anything for
//! programs have a table of their own.

const POST: &str = "POST, OPTIONS";
const GET: &str = "GET, HEAD, OPTIONS";
const GET_DELETE: &str = "GET, HEAD, DELETE, OPTIONS";
const GET_POST: &str = "GET, HEAD, POST, OPTIONS";
const PUT: &str = "PUT, OPTIONS";
const DELETE: &str = "DELETE, OPTIONS";

macro_rules! pages {
    ($($page:ident $path:literal $summary:literal;)+) => {
        /// A path at which there is a page and nothing else, whatever is accepted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PagePath {
            $($page,)+
        }

        impl PagePath {
            /// Every one, with its name and what it is.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$page, stringify!($page), $summary),)+];

            fn at(path: &str) -> Option<Self> {
                match path {
                    $($path => Some(Self::$page),)+
                    _ => None,
                }
            }

            /// Its path.
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$page => $path,)+
                }
            }
        }
    };
}

pages! {
    Home "/" "The catalogue for people";
    Sell "/sell" "Offer something for sale, for people";
}

macro_rules! endpoints {
    ($($name:ident $(($param:ident))? $methods:ident $(of $all:ident)? $($template:literal)|+;)*) => {
        /// A path that exists, with what it names.
        #[derive(Debug, PartialEq, Eq)]
        pub enum Endpoint {
            /// A page alone.
            Page(PagePath),
            $($name $((endpoints!(@type $param)))?,)*
        }

        /// Every path, with the methods of a row.
        #[cfg(test)]
        pub fn routes() -> Vec<(&'static str, &'static str)> {
            let pages = PagePath::ALL.iter().map(|(page, ..)| (page.path(), GET));
            pages.chain([$($(($template, $methods),)+)*]).collect()
        }

        impl Endpoint {
            /// The endpoint of a method and a path; else the methods that the path takes, if it exists.
            fn parse(method: &str, path: &str) -> Result<Self, Option<&'static str>> {
                let mut allowed = None;
                $(if let Some(_named) = [$(($template, const { fixed($template) })),+]
                    .iter()
                    .find_map(|(template, fixed)| if path.starts_with(fixed) { named(template, path) } else { None })
                {
                    if $methods.split(", ").any(|taken| taken == method) {
                        return Ok(Self::$name $((endpoints!(@value $param _named)))?);
                    }
                    allowed = Some(endpoints!(@all $methods $($all)?));
                })*
                if let Some(page) = PagePath::at(path) {
                    return if GET.split(", ").any(|taken| taken == method) { Ok(Self::Page(page)) } else { Err(Some(GET)) };
                }
                Err(allowed)
            }

            /// Its path with names in place of what varies.
            pub const fn template(&self) -> &'static str {
                match self {
                    Self::Page(page) => page.path(),
                    $(Self::$name $((endpoints!(@any $param)))? => {
                        let [first, ..] = [$($template),+];
                        first
                    })*
                }
            }

            /// The methods that its path takes, as `Allow` lists them.
            const fn allowed(&self) -> &'static str {
                match self {
                    Self::Page(_) => GET,
                    $(Self::$name $((endpoints!(@any $param)))? => endpoints!(@all $methods $($all)?),)*
                }
            }
        }
    };
    (@type $param:ident) => { String };
    (@value $param:ident $named:ident) => { $named.to_owned() };
    (@any $param:ident) => { _ };
    (@all $methods:ident) => { $methods };
    (@all $methods:ident $all:ident) => { $all };
}

endpoints! {
    Unlock(id) GET of GET_POST "/listings/{id}/unlock";
    UnlockByPost(id) POST of GET_POST "/listings/{id}/unlock";
    Listings GET of GET_POST "/listings";
    CreateListing POST of GET_POST "/listings";
    PaymentDraft(id) POST "/listings/{id}/payment-draft";
    Preview(id) GET "/listings/{id}/preview";
    Picture(id) GET "/listings/{id}/picture.png";
    Relist(id) POST "/listings/{id}/relist";
    Listing(id) GET of GET_DELETE "/listings/{id}";
    TakeOff(id) DELETE of GET_DELETE "/listings/{id}";
    Purchases GET "/purchases";
    Purchase(id) GET "/purchases/{id}";
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
    Agents GET "/me/agents";
    Agent(id) DELETE "/me/agents/{id}";
    PurchaseRequest(id) GET of GET_POST "/me/requests/{id}";
    AnswerRequest(id) POST of GET_POST "/me/requests/{id}";
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
    Asset(name) GET "/assets/{name}";
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
    OperatorStatus GET "/operator/status";
}

/// How every path of a template begins: by it most templates are ruled out.
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

/// What stands in a template's place, if the path is of this template; empty where it has none.
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

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved<'a> {
    Route(Endpoint),
    /// `OPTIONS` of a path with these methods.
    Preflight(&'static str),
    /// The path takes only these methods.
    WrongMethod(&'static str),
    /// The path has slashes at its end; this one without them exists.
    Moved(&'a str),
    /// No such path.
    Unknown,
}

/// Finds the route of a method, by its name in capitals, and a path.
pub fn resolve<'a>(method: &str, path: &'a str) -> Resolved<'a> {
    match Endpoint::parse(method, path) {
        // The first of those that answer at the path.
        Ok(endpoint) if method == "OPTIONS" => Resolved::Preflight(endpoint.allowed()),
        Ok(endpoint) => Resolved::Route(endpoint),
        Err(Some(allowed)) => Resolved::WrongMethod(allowed),
        Err(None) => {
            let without = path.trim_end_matches('/');
            let moved = without != path && Endpoint::parse("OPTIONS", without).is_ok();
            if moved { Resolved::Moved(without) } else { Resolved::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_path_has_its_methods_and_no_others() {
        assert_eq!(resolve("GET", "/health"), Resolved::Route(Endpoint::Health));
        assert_eq!(resolve("HEAD", "/listings"), Resolved::Route(Endpoint::Listings));
        assert_eq!(resolve("DELETE", "/listings"), Resolved::WrongMethod(GET_POST));
        assert_eq!(resolve("OPTIONS", "/listings/x"), Resolved::Preflight(GET_DELETE));
        for method in ["QUERY", "TRACE", "get", ""] {
            assert_eq!(resolve(method, "/health"), Resolved::WrongMethod(GET), "{method}");
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
            let own = methods.split(", ").filter(|method| !["HEAD", "OPTIONS"].contains(method));
            assert_eq!(own.count(), 1, "{template}: each method is a row of its own, with a handler");
            let path = template.replace(['{', '}'], "");
            let rows = routes.iter().filter(|(other, _)| named(other, &path).is_some());
            let rows: Vec<&(&str, &str)> = rows.collect();
            assert!(rows.iter().all(|(other, _)| other == template), "{template} hides another");
            let taken: Vec<&str> = rows.iter().flat_map(|(_, methods)| methods.split(", ")).collect();
            for method in methods.split(", ").filter(|method| *method != "OPTIONS") {
                assert_eq!(taken.iter().filter(|taken| **taken == method).count(), 1, "{method} {template}");
                let endpoint = Endpoint::parse(method, &path).unwrap();
                assert!(template.starts_with(endpoint.template()), "{template}");
                let allowed: BTreeSet<&str> = endpoint.allowed().split(", ").collect();
                assert_eq!(allowed, taken.iter().copied().collect(), "{template}");
            }
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
        assert_eq!(resolve("GET", "/"), Resolved::Route(Endpoint::Page(PagePath::Home)));
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
