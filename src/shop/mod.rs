//! The shop as agents meet it: the ports of `agents::mcp::shop` on the checkout.

mod open;
mod owner;

use agents::mcp::shop::ShopError;
use cardano::slots::Millis;
use edge::{chain::Blockfrost, serve::Request};
use market::{
    ListingId,
    catalogue::{self, Filter, Page},
};
pub use open::OpenCounter;
pub use owner::OwnerShop;

use crate::{
    app::App,
    checkout::Ports,
    error::ApiError,
    known,
    paywall::{self, Priced},
};

/// Waits in ms before each look for a payment in a block: shorter than a tool call may take, so that there is time for the
/// looks themselves and for an answer that says what to call next.
const SCHEDULE: [Millis; 9] = [500, 1_000, 1_500, 2_500, 4_000, 5_000, 6_000, 7_000, 8_000];

/// Whatever of ours fails: the client may try again.
fn unavailable(error: impl Into<ApiError>) -> ShopError {
    let error = error.into();
    if let ApiError::Fault(fault) = &error {
        edge::log::fault(fault);
    }
    ShopError::Unavailable(error.to_string())
}

/// A listing's terms, if it is for sale.
async fn priced(app: &App, request: &Request, id: &ListingId) -> Result<Priced, ShopError> {
    paywall::priced(app, request, id).await.map_err(unavailable)?.ok_or(ShopError::NoListing)
}

/// Everybody's side of it.
struct Counter<'a> {
    app: &'a App,
    request: &'a Request,
}

impl Counter<'_> {
    fn ports(&self) -> Result<Ports, ShopError> {
        Ports::of(self.app, self.request, &SCHEDULE).map_err(unavailable)
    }

    fn chain(&self) -> Result<Blockfrost, ShopError> {
        self.app.chain(self.request).map_err(unavailable)
    }

    /// Our address; empty where it is not configured, which no request gets past.
    fn origin(&self) -> String {
        self.app.public_origin(self.request).unwrap_or_default()
    }

    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        let page = known::page(self.app, self.request, &filter).await.map_err(unavailable)?;
        Ok(Page::clone(&page))
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        let database = self.app.database();
        catalogue::one(&database, id).await.map_err(unavailable)?.ok_or(ShopError::NoListing)
    }
}

#[cfg(test)]
mod tests {
    use super::SCHEDULE;
    use crate::app::MAX_CALL_MS;

    #[test]
    fn a_call_looks_for_the_last_time_well_before_its_time_is_over() {
        assert!(SCHEDULE.iter().sum::<u64>() + 5_000 <= MAX_CALL_MS);
        const { assert!(MAX_CALL_MS < 45_000) };
    }
}
