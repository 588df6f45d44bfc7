//! A watcher without keys and arbiter, which only reads.

use cardano::keys::SigningKey;
use market::watch::{ArbiterClient, Keys, ServiceWallet};

/// Performs no action.
pub struct Idle;

impl Keys for Idle {
    fn seller(&self) -> Option<&SigningKey> {
        None
    }
    fn buyer(&self, _: &ServiceWallet) -> Option<SigningKey> {
        None
    }
}

impl ArbiterClient for Idle {
    async fn resolve(
        &self,
        _: &api_types::arbiter::ResolveRequest,
    ) -> Result<api_types::arbiter::ResolveResult, String> {
        Err("no arbiter is asked".into())
    }
}
