//! Implements the ports of `agents::mcp::shop` with the use cases behind the HTTP routes.

mod open;
mod owner;

use std::rc::Rc;

use agents::mcp::shop::{Shelf, ShopError};
use market::{
    ListingId,
    catalogue::{self, Filter, Page},
};
pub use owner::OwnerShop;

use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    read_cache::{self, VersionedDatabase},
    route::OnMiss,
};

/// Converts an error to the form in which a tool returns it: a message, advice, and when to retry. The causes of a
/// fault are only logged.
fn told(error: impl Into<ApiError>) -> ShopError {
    let error = error.into();
    let answer = error.answer();
    if let ApiError::Fault(fault) = &error {
        edge::log::fault(fault);
    }
    match (&error, answer.status()) {
        (_, 429) => ShopError::RateLimited(answer.text().to_owned()),
        (ApiError::Fault(_), 500..) => ShopError::Unavailable(error.to_string()),
        _ => ShopError::NotDone(answer.text().to_owned()),
    }
}

/// The tools that are available without sign-in.
impl Shelf for App {
    fn origin(&self) -> String {
        // Requests without a configured origin are rejected before this.
        self.public_origin().unwrap_or_default()
    }

    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        let (weight, name) = (AnswerMemory::of_listings(filter.page_size()), format!("{filter:?}"));
        let read = async |database: Rc<VersionedDatabase>| catalogue::page(&*database, &filter).await;
        let page = read_cache::list(self, OnMiss(Counted::SEARCH), weight, &name, read).await.map_err(told)?;
        Ok(Page { json: page.json.copy(), next: page.next.as_deref().map(str::to_owned), some_words: page.some_words })
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        catalogue::one(&self.nearest(), id).await.map_err(told)?.ok_or(ShopError::NoListing)
    }
}

#[cfg(test)]
mod tests {
    use market::checkout::Unavailable;

    use super::*;
    use crate::limits::too_many;

    #[test]
    fn a_tool_called_too_often_names_the_limit_and_the_wait() {
        let text = told(too_many(Counted::BUY)).to_string();
        let told = "Rate limited: too many purchases of this account, more than 1200 in 60 seconds: try again in 60 seconds. \
                    Nothing was paid by this call.";
        assert_eq!(text, told);
        let crowded = super::told(edge::http::BodyError::OutOfMemory).to_string();
        assert!(crowded.starts_with("Rate limited") && crowded.contains("in 5 seconds"), "{crowded}");
    }

    #[test]
    fn a_lock_without_a_possible_result_is_not_retryable() {
        let text = told(Unavailable::Refundable(cardano::TxHash::new([7; 32]))).to_string();
        assert!(text.contains("take the money back") && !text.contains("try"), "{text}");
    }
}
