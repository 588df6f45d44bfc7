//! `GET /creators/{address}`

use cardano::{Address, address::AddressError};
use std::rc::Rc;

use edge::answer::{ErrorAnswer, Fault};
use edge::serve::{Request, Response};
use market::catalogue::{self, Cursor};
use url::form_urlencoded;

use crate::{
    app::App,
    error::{ApiError, Refused},
    limits::Weight,
    read_cache::{self, VersionedDatabase},
    respond,
};

/// Why there is no creator's page.
#[derive(Debug, thiserror::Error)]
pub enum CreatorError {
    /// Not a preprod key address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Not where a page ended.
    #[error("cursor: must come from a Link header")]
    Cursor,
}

impl Refused for CreatorError {
    fn answer(&self) -> ErrorAnswer {
        ErrorAnswer::bad_request(self.to_string())
    }
}

/// What a creator sells: the newest, or what comes after them.
pub async fn show(app: &App, address: &str, request: &Request) -> Result<Response, ApiError> {
    let address: Address = address.parse().map_err(CreatorError::from)?;
    let mut pairs = form_urlencoded::parse(request.query().unwrap_or_default().as_bytes());
    let after = pairs.find_map(|(name, value)| (name == "cursor").then(|| value.parse::<Cursor>()));
    let after = after.transpose().map_err(|()| CreatorError::Cursor)?;
    let name = after.map_or_else(|| address.to_string(), |cursor| format!("{address} {cursor}"));
    let read = async |database: Rc<VersionedDatabase>| catalogue::creator(&*database, &address, after).await.map(Some);
    let page = read_cache::answer(app, request, Some(Weight::Long), &name, read).await?;
    let page = page.ok_or_else(|| Fault::Inconsistent("a creator without a page".into()))?;
    Ok(respond::linked(Response::kept_json(&page.json), request, page.next.as_deref())?)
}
