//! `GET /creators/{address}`

use cardano::Address;
use market::catalogue;
use worker::Response;

use crate::{app::App, error::ApiError, respond};

/// What a creator sells.
pub async fn show(app: &App, address: &str) -> Result<Response, ApiError> {
    let address: Address =
        address.parse().map_err(|error: cardano::address::AddressError| ApiError::bad_request(error.to_string()))?;
    Ok(respond::json(catalogue::creator(&app.database()?, &address).await?)?)
}
