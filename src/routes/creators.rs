//! `GET /creators/{address}`

use cardano::{Address, address::AddressError};
use edge::answer;
use edge::serve::{Request, Response};
use market::catalogue::{self, Cursor};

use crate::{app::App, error::ApiError, respond};

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

/// What a creator sells: the newest, or what comes after them.
pub async fn show(app: &App, address: &str, request: &Request) -> Result<Response, ApiError> {
    let address: Address = address.parse().map_err(CreatorError::from)?;
    let url = request.url()?;
    let after = url.query_pairs().find_map(|(name, value)| (name == "cursor").then(|| value.parse::<Cursor>()));
    let after = after.transpose().map_err(|()| CreatorError::Cursor)?;
    let page = catalogue::creator(&app.database()?, &address, after).await?;
    Ok(respond::linked(answer::json(page.json)?, url, page.next.as_deref())?)
}
