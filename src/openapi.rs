//! Serves `/openapi.json` and `/docs`. A test generates both files from the API's types, and the worker serves the
//! files unchanged.
//!
//! `UPDATE_OPENAPI=1 cargo test -p surety-api openapi` generates both.

use edge::serve::Response;
use pages::asset::DOCS_STYLE;

use crate::{
    app::App,
    error::ApiError,
    route::{Limit, Route, route},
};

#[cfg(test)]
pub mod operations;
#[cfg(test)]
mod page;

const DOCUMENT: &str = include_str!("openapi/openapi.json");
const PAGE: &str = include_str!("openapi/docs.html");
const CACHED: &str = "public, max-age=300";

pub const ROUTES: &[Route] = &[
    route! {
        GET "/openapi.json", Limit::Free => document();
        docs |of| of.names("openApi", "System", "Get this API description").answers::<operations::Document>(200, "An OpenAPI 3.1 document.")
    },
    route! {
        GET "/docs", Limit::Free => docs();
        docs |of| of.names("docs", "System", "Show this API description as a page").text(200, "text/html; charset=utf-8", "A page.")
    },
];

async fn document(_: &App) -> Result<Response, ApiError> {
    Ok(Response::json(DOCUMENT).with_header("cache-control", CACHED))
}

/// Serves the API reference as a page. Its example commands contain the service's address.
async fn docs(app: &App) -> Result<Response, ApiError> {
    let page = PAGE.replace("{origin}", &app.public_origin()?).replace("{style}", &DOCS_STYLE.to_string());
    Ok(Response::text(page)
        .with_header("content-type", "text/html; charset=utf-8")
        .with_header(
            "content-security-policy",
            "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        .with_header("cache-control", CACHED))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::routes;

    fn check(name: &str, served: &str, made: &str) {
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(format!("{}/src/openapi/{name}", env!("CARGO_MANIFEST_DIR")), made).unwrap();
        } else {
            assert!(served == made, "{name} has changed: UPDATE_OPENAPI=1 cargo test -p surety-api openapi");
        }
    }

    #[test]
    fn the_served_openapi_document_matches_the_types() {
        let document = operations::document(env!("CARGO_PKG_VERSION"));
        check("openapi.json", DOCUMENT, &format!("{document:#}\n"));
        check("docs.html", PAGE, &page::page(&document));
    }

    /// `tests/load/http/routes.test.ts` sends requests to every route in `routes.json`.
    #[test]
    fn the_end_to_end_test_of_all_routes_knows_each() {
        let document = operations::document(env!("CARGO_PKG_VERSION"));
        let described = |route: &Route| {
            let operation = &document["paths"][route.path][route.method.to_lowercase()];
            let security = operation["security"].as_array().unwrap().iter();
            let security: Vec<_> = security.flat_map(|scheme| scheme.as_object().unwrap().keys()).collect();
            let body = route.endpoint.body.map(|body| json!({ "max": body.max, "refusal": body.refusal }));
            let limit = route.endpoint.limit.kind();
            json!({ "method": route.method, "path": route.path, "security": security, "limit": limit, "body": body })
        };
        let routes: Vec<_> = routes::all().map(described).collect();
        let known = include_str!("openapi/routes.json");
        check("routes.json", known, &format!("{:#}\n", json!(routes)));
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_declares_what_its_path_names() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let mut names = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for operation in methods.as_object().unwrap().values() {
                assert!(names.insert(operation["operationId"].as_str().unwrap()), "{path}");
                let parameters = operation["parameters"].as_array().unwrap();
                let declared = parameters.iter().filter(|one| one["in"] == "path");
                let declared: Vec<String> =
                    declared.map(|one| format!("{{{}}}", one["name"].as_str().unwrap())).collect();
                let named: Vec<&str> = path.split('/').filter(|segment| segment.starts_with('{')).collect();
                assert_eq!(declared, named, "{path}");
            }
        }
    }
}
