//! `GET /health`

use worker::Response;

use crate::{error::ApiError, respond};

/// The service runs, and for which network.
pub fn show() -> Result<Response, ApiError> {
    Ok(respond::json("{\"ok\":true,\"network\":\"preprod\"}".to_owned())?)
}
