//! What the operator configures. All of it is checked before anything is served.

use std::borrow::Cow;

use cardano::{ContentHash, keys::SigningKey};
use edge::settings::{self, SettingError};
use escrow::Deployment;
use subtle::ConstantTimeEq;
use worker::Env;

/// Fewest characters of the token.
const MIN_TOKEN: usize = 24;

/// The arbiter's configuration.
pub struct Settings {
    pub token: Token,
    pub key: SigningKey,
    pub deployment: Deployment,
    pub blockfrost_url: String,
    pub blockfrost_project: Option<String>,
}

/// The token, as its hash: what is compared has one length whatever is presented.
pub struct Token(ContentHash);

impl Token {
    fn new(token: &str) -> Option<Self> {
        (token.chars().count() >= MIN_TOKEN).then(|| Self(ContentHash::of(token.as_bytes())))
    }

    /// Whether this `Authorization` header presents the token. In constant time, as far as the token is concerned.
    pub fn admits(&self, authorization: Option<&str>) -> bool {
        let presented = authorization.and_then(|header| header.split_once(' '));
        let Some((_, token)) = presented.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return false;
        };
        self.0.as_bytes().ct_eq(ContentHash::of(token.trim().as_bytes()).as_bytes()).into()
    }
}

const fn unusable(name: &'static str, problem: &'static str) -> SettingError {
    SettingError { name: Cow::Borrowed(name), problem }
}

impl Settings {
    /// Reads and checks all settings.
    pub fn read(env: &Env) -> Result<Self, SettingError> {
        const TOKEN: &str = "ARBITER_TOKEN";
        let token = settings::required(env, TOKEN)?;
        let token = Token::new(&token).ok_or(unusable(TOKEN, "must have at least 24 characters"))?;
        let key = settings::signing_key(env, "ARBITER_SECRET")?;
        let deployment = settings::deployment(env)?.ok_or(unusable(settings::ESCROW_DEPLOYMENT, "is not set"))?;
        let votes = deployment.parameters.weight_of(&key.key_hash());
        if usize::try_from(deployment.parameters.required_admins).map_or(true, |required| required > votes) {
            return Err(unusable("ARBITER_SECRET", "is not the key that settles disputes of ESCROW_DEPLOYMENT alone"));
        }
        let blockfrost_url = settings::required(env, "BLOCKFROST_URL")?;
        let blockfrost_project = settings::optional(env, "BLOCKFROST_PROJECT_ID");
        Ok(Self { token, key, deployment, blockfrost_url, blockfrost_project })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a token of 24 characters";

    #[test]
    fn a_token_has_at_least_24_characters() {
        assert_eq!(TOKEN.len(), MIN_TOKEN);
        assert!(Token::new(TOKEN).is_some());
        assert!(Token::new(&TOKEN[1..]).is_none());
        // Characters, not bytes.
        assert!(Token::new(&"é".repeat(23)).is_none());
    }

    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = Token::new(TOKEN).unwrap();
        assert!(token.admits(Some(&format!("Bearer {TOKEN}"))));
        assert!(token.admits(Some(&format!("bearer {TOKEN}"))));
        for header in [
            String::new(),
            TOKEN.to_owned(),
            format!("Basic {TOKEN}"),
            format!("Bearer {}", &TOKEN[1..]),
            format!("Bearer {TOKEN}x"),
            "Bearer ".to_owned(),
            format!("Bearer{TOKEN}"),
        ] {
            assert!(!token.admits(Some(&header)), "{header}");
        }
        assert!(!token.admits(None));
    }
}
