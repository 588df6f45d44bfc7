//! `GET /health`

use edge::serve::Response;

use crate::error::ApiError;

/// The service runs, and for which network.
pub fn show() -> Result<Response, ApiError> {
    Ok(edge::answer::json("{\"ok\":true,\"network\":\"preprod\"}".to_owned())?)
}
