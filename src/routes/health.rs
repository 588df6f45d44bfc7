//! `GET /health`

use edge::serve::{KeptText, Response};

use crate::error::ApiError;

thread_local! {
    static HEALTH: KeptText = KeptText::new("{\"ok\":true,\"network\":\"preprod\"}");
}

/// Reports that the service runs, and its network.
pub fn show() -> Result<Response, ApiError> {
    Ok(HEALTH.with(Response::kept_json))
}
