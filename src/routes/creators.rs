//! A creator's listings: `GET /creators/{address}`.

use std::rc::Rc;

use api_types::{Error, ErrorCode};
use cardano::{Address, address::AddressError};
use edge::{answer::ErrorAnswer, serve::Response};
use market::catalogue::{self, Cursor};
use url::form_urlencoded;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    read_cache::{self, VersionedDatabase},
    respond,
    route::{Argument, Asked, Limit, OnMiss, Route, route},
    routes::pages,
};

/// 400: the text is not an address with a payment key on this network.
pub fn invalid_address(error: AddressError) -> ErrorAnswer {
    ErrorAnswer::bad_request(Error::new(ErrorCode::InvalidAddress, error))
}

impl Argument for Address {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(asked.parameter.parse().map_err(invalid_address)?)
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.path("address", "The seller's preprod address.").fails(&[400])
    }
}

pub const ROUTES: &[Route] = &[route! {
    GET "/creators/{address}", Limit::OnMiss(Counted::SEARCH) => show(Address, OnMiss);
    page Limit::Client(Counted::SEARCH) => pages::creator(Address);
    docs |of| of
        .names("getCreator", "Catalogue", "Get a seller's listings and reputation")
        .cursor()
        .answers::<api_types::Creator>(200, "The seller's listings, sales and reputation.")
        .page(200)
        .header(200, "Link", "Address of the next page; absent on the last page.", false)
}];

/// Shows a creator's listings: the newest, or those after the query's cursor.
async fn show(app: &App, address: Address, limit: OnMiss) -> Result<Response, ApiError> {
    let mut pairs = form_urlencoded::parse(app.request.query().unwrap_or_default().as_bytes());
    let after = after(&mut pairs)?;
    let name = after.map_or_else(|| address.to_string(), |cursor| format!("{address} {cursor}"));
    let read = async |database: Rc<VersionedDatabase>| catalogue::creator(&*database, &address, after).await;
    let page = read_cache::list(app, limit, AnswerMemory::LONG, &name, read).await?;
    Ok(respond::linked(Response::js_json(&page.json), &app.request, page.next.as_deref())?)
}

/// Parses the cursor in a query; `None` if the query has none.
pub fn after(pairs: &mut form_urlencoded::Parse<'_>) -> Result<Option<Cursor>, ErrorAnswer> {
    let cursor = pairs.find_map(|(name, value)| (name == "cursor").then(|| value.parse()));
    cursor.transpose().map_err(|()| {
        let rule = "must come from a Link header";
        ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidValue, "cursor", rule))
    })
}
