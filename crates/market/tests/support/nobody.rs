//! A watcher without keys and without an arbiter: it reads and does nothing.

use cardano::keys::SigningKey;
use market::watch::{ArbiterClient, Dispute, Holder, Keys};

/// Nobody acts.
pub struct Nobody;

impl Keys for Nobody {
    fn seller(&self) -> Option<&SigningKey> {
        None
    }
    fn buyer(&self, _: &Holder) -> Option<SigningKey> {
        None
    }
}

impl ArbiterClient for Nobody {
    async fn resolve(&self, _: &Dispute<'_>) -> Result<String, String> {
        Err("nobody is asked".into())
    }
}
