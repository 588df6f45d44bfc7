//! Who asks: the bearer token of a session.

use market::account::Token;
use worker::Request;

use crate::error::ApiError;

/// What a 401 says.
pub const SIGN_IN: &str = "not signed in, or the session is over: sign in again (POST /auth/challenge)";

/// The session's token that a request presents; `None` where it presents none.
pub fn token(request: &Request) -> Result<Option<Token>, ApiError> {
    let Some(header) = request.headers().get("authorization")? else {
        return Ok(None);
    };
    let token = header
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| Token::presented(token.trim()));
    token.map(Some).ok_or_else(|| ApiError::unauthorized(SIGN_IN))
}

/// The session's token that a request must present.
pub fn required(request: &Request) -> Result<Token, ApiError> {
    token(request)?.ok_or_else(|| ApiError::unauthorized(SIGN_IN))
}
