//! Finds the route of a request.

use crate::{route::Route, routes};

/// Matches a path against a template. Returns the value of the template's parameter (empty if the template has none),
/// or `None` if the path does not match.
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

/// Finds the route of a method and path, with the value of the path's parameter. If no route matches, the error lists
/// the methods that the path allows. The list is empty for an unknown path.
fn find<'a>(method: &str, path: &'a str) -> Result<(&'static Route, &'a str), Vec<&'static str>> {
    let mut taken = vec![];
    for route in routes::all() {
        if path.starts_with(route.fixed)
            && let Some(parameter) = named(route.path, path)
        {
            if route.methods().contains(&method) {
                return Ok((route, parameter));
            }
            taken.extend(route.methods());
        }
    }
    Err(taken)
}

/// Result of routing.
pub enum Resolved<'a> {
    /// A route, with the value of the path's parameter.
    Route(&'static Route, &'a str),
    /// An `OPTIONS` request for a path with these methods, as listed in `Allow`.
    Preflight(String),
    /// The path allows only these methods.
    WrongMethod(String),
    /// The path has trailing slashes, and this path without them exists.
    Moved(&'a str),
    /// The path does not exist.
    Unknown,
}

/// Finds the route of a method (in upper case) and a path.
pub fn resolve<'a>(method: &str, path: &'a str) -> Resolved<'a> {
    match find(method, path) {
        Ok((route, parameter)) => Resolved::Route(route, parameter),
        Err(mut taken) if !taken.is_empty() => {
            taken.push("OPTIONS");
            let allowed = taken.join(", ");
            if method == "OPTIONS" { Resolved::Preflight(allowed) } else { Resolved::WrongMethod(allowed) }
        }
        Err(_) => {
            let without = path.trim_end_matches('/');
            let exists = !matches!(find(method, without), Err(taken) if taken.is_empty());
            if without != path && exists { Resolved::Moved(without) } else { Resolved::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::route::Limit;

    /// Describes the result of routing as text for tests: the route's method and path, with the parameter's value.
    fn resolved(method: &str, path: &str) -> String {
        match resolve(method, path) {
            Resolved::Route(route, parameter) => format!("{} {} {parameter}", route.method, route.path),
            Resolved::Preflight(allowed) => format!("preflight {allowed}"),
            Resolved::WrongMethod(allowed) => format!("wrong method {allowed}"),
            Resolved::Moved(without) => format!("moved {without}"),
            Resolved::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn a_path_has_its_methods_and_no_others() {
        assert_eq!(resolved("GET", "/health"), "GET /health ");
        assert_eq!(resolved("HEAD", "/listings"), "GET /listings ");
        assert_eq!(resolved("PATCH", "/listings"), "wrong method GET, HEAD, POST, OPTIONS");
        assert_eq!(resolved("OPTIONS", "/listings/x/unlock"), "preflight GET, HEAD, POST, OPTIONS");
        for method in ["QUERY", "TRACE", "get", ""] {
            assert_eq!(resolved(method, "/health"), "wrong method GET, HEAD, OPTIONS", "{method}");
        }
    }

    #[test]
    fn a_path_template_names_its_parameters() {
        assert_eq!(resolved("GET", "/listings/lst_1/unlock"), "GET /listings/{id}/unlock lst_1");
        assert_eq!(resolved("GET", "/me/purchases/ab/content"), "GET /me/purchases/{id}/content ab");
    }

    #[test]
    fn a_path_allows_the_methods_of_its_routes_and_shadows_no_other_path() {
        for Route { method, path: template, .. } in routes::all() {
            let path = template.replace(['{', '}'], "");
            let same: Vec<_> = routes::all().filter(|other| named(other.path, &path).is_some()).collect();
            assert!(same.iter().all(|other| other.path == *template), "{template} hides another");
            assert_eq!(same.iter().filter(|other| other.method == *method).count(), 1, "{method} {template}");
            let taken: Vec<&str> = same.iter().flat_map(|route| route.methods()).copied().collect();
            assert_eq!(resolved("OPTIONS", &path), format!("preflight {}, OPTIONS", taken.join(", ")));
        }
    }

    #[test]
    fn only_routes_that_cost_nothing_have_no_rate_limit() {
        let free: BTreeSet<_> = routes::all()
            .filter(|route| route.endpoint.limit == Limit::Free)
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        let known = [
            // Documents that are in the program.
            "GET /docs",
            "GET /llms.txt",
            "GET /openapi.json",
            "GET /robots.txt",
            "GET /sell",
            "GET /protection",
            "GET /help",
            "GET /about",
            "GET /connect",
            "GET /supported",
            "GET /.well-known/did.json",
            "GET /.well-known/oauth-authorization-server",
            "GET /.well-known/oauth-authorization-server/mcp",
            "GET /.well-known/oauth-protected-resource",
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/openid-configuration",
            // Without a read of the database, or at most one per second.
            "GET /health",
            "GET /health/ready",
            // For the operator alone, and over loopback alone.
            "GET /operator/status",
            "GET /assets/{folder}/test-wallet.js",
        ];
        assert_eq!(free, known.map(str::to_owned).into());
    }

    #[test]
    fn slashes_at_the_end_lead_to_the_path_without_them() {
        for (path, without) in [
            ("/health/", "/health"),
            ("/listings//", "/listings"),
            ("/listings/lst_1/unlock/", "/listings/lst_1/unlock"),
        ] {
            assert_eq!(resolved("POST", path), format!("moved {without}"));
        }
        assert_eq!(resolved("GET", "/"), "GET / ");
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
            assert_eq!(resolved("GET", path), "unknown", "{path}");
        }
    }
}
