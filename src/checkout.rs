//! Connects the market's checkout to the worker's ports, and buys for accounts.

use std::rc::Rc;

use api_types::{Bought, Error};
use cardano::{Lovelace, TxHash, slots::Millis};
use edge::{
    answer::ErrorAnswer, chain::Blockfrost, contents::ContentStore, d1::D1, ed25519::WebCrypto, http, timer::Timer,
};
use market::{
    DeliveryMode, ListingId,
    account::Account,
    catalogue::ListingTerms,
    checkout::{BuyError, Checkout, NotRead, Order, OwnPurchase, PaymentOption, Unavailable},
    result_poster::Seller,
};

use crate::{
    app::App,
    error::ApiError,
    limits,
    read_cache::{self, ChainClock},
};

/// Times to wait in ms before each poll for a block: about 45 s in total, in which preprod makes two blocks. There are
/// few polls, because each may call the provider.
const SCHEDULE: [Millis; 9] = [500, 2_000, 4_500, 6_000, 7_000, 7_000, 7_000, 7_000, 3_500];
/// Part of a request's time in ms that is reserved for the provider calls of its polls and for the answer.
const POLLING_MS: Millis = 5_000;
/// Maximum number of provider calls per poll.
const CALLS_PER_POLL: u32 = 3;

/// The market's checkout with this worker's adapters for D1, Blockfrost, WebCrypto, timers and the content store.
pub type ApiCheckout<'a> = Checkout<'a, D1, Blockfrost, WebCrypto, Timer, ContentStore>;

impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Port(error) => error.into(),
            Unavailable::NotIncluded(_)
            | Unavailable::Unconfirmed(_)
            | Unavailable::NoResult(_)
            | Unavailable::Refundable(_)
            | Unavailable::Refunded(_)
            | Unavailable::Restoring
            | Unavailable::ChainBehind => ErrorAnswer::unavailable(error).into(),
        }
    }
}

/// Returns the times to wait before each poll, as many as fit into a request's remaining time and provider calls.
fn schedule(max_ms: Millis, calls: u32) -> &'static [Millis] {
    let ends = SCHEDULE.iter().scan(POLLING_MS, |end, wait| {
        *end = end.saturating_add(*wait);
        Some(*end)
    });
    let polls = usize::try_from(calls / CALLS_PER_POLL).unwrap_or(0);
    SCHEDULE.get(..ends.take_while(|end| *end <= max_ms).count().min(polls)).unwrap_or(&SCHEDULE)
}

/// Calls `run` with a checkout that uses the database, the chain provider and the settings of this request.
pub async fn with<T>(
    app: &App,
    clock: ChainClock,
    options: &[PaymentOption<'_>],
    run: impl AsyncFnOnce(&ApiCheckout<'_>) -> T,
) -> Result<T, ApiError> {
    let (methods, keys, line, signal) = (app.methods()?, app.keys()?, &app.line, app.request.inner().signal());
    let seller = match methods.deployment() {
        Some(deployment) => keys.seller()?.map(|key| Seller { deployment, key }),
        None => None,
    };
    let checkout = Checkout {
        database: &app.database(),
        chain: &app.chain()?,
        signatures: &WebCrypto,
        sleep: &app.timer(),
        contents: &app.contents()?,
        seller,
        options,
        now: app.now_ms,
        clock: clock.ms,
        behind: clock.is_behind,
        schedule: schedule(app.max_ms, app.usage.calls_left()),
        confirmations: methods.confirmations,
        client_disconnected: &|| signal.aborted(),
        note: &|text| line.note("checkout", text),
    };
    Ok(run(&checkout).await)
}

/// Outcome of an order.
pub enum Ordered {
    /// The account owns the listing, because this order paid for it or an earlier one did.
    Bought(Rc<ListingTerms>, Box<Bought>),
    /// The listing was not bought, for a reason other than [`BuyError::Unavailable`].
    NotBought(Rc<ListingTerms>, BuyError),
    /// No listing with this id is for sale.
    UnknownListing,
}

/// Buys a listing from an account's service wallet, or returns the existing purchase.
///
/// `agreed` is the price that the buyer agreed to; `None` if the client stated no price.
pub async fn order(
    app: &App,
    account: &Account,
    id: &str,
    mode: DeliveryMode,
    agreed: Option<Lovelace>,
) -> Result<Ordered, ApiError> {
    let Ok(id) = id.parse::<ListingId>() else { return Ok(Ordered::UnknownListing) };
    let _held = http::hold(&app.request, limits::PURCHASE_BYTES)?;
    let Some(priced) = read_cache::priced(app, &id).await? else { return Ok(Ordered::UnknownListing) };
    let terms = priced.terms.clone();
    let (key, nonce) = (app.account_key(account)?, edge::random()?);
    let order = Order { account, key: &key, terms: &terms, mode, agreed, nonce };
    let methods = app.methods()?;
    let options = methods.options_for(&terms);
    let bought = with(app, priced.clock, &options, async |checkout| checkout.buy(&order).await).await?;
    app.record_payment(Some(mode), bought.as_ref().err().map(|error| Error::from(error.clone()).code));
    match bought {
        Ok(bought) => Ok(Ordered::Bought(terms, Box::new(bought))),
        Err(BuyError::UnknownListing) => Ok(Ordered::UnknownListing),
        Err(BuyError::Unavailable(error)) => Err(error.into()),
        Err(error) => Ok(Ordered::NotBought(terms, error)),
    }
}

/// Reads a purchase of an account, with its content if requested.
pub async fn own_purchase(
    app: &App,
    account: &Account,
    id: &TxHash,
    with_content: bool,
) -> Result<Result<OwnPurchase, NotRead>, ApiError> {
    let clock = ChainClock::read(app).await?;
    with(app, clock, &[], async |checkout| checkout.own_purchase(account, id, with_content).await).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{MAX_CALL_MS, MAX_REQUEST_MS};

    #[test]
    fn the_last_poll_is_well_before_the_requests_time_is_over() {
        assert_eq!(schedule(MAX_REQUEST_MS, u32::MAX), SCHEDULE);
        assert_eq!(schedule(MAX_CALL_MS, u32::MAX), &SCHEDULE[..7]);
        assert_eq!(schedule(MAX_REQUEST_MS, 7), &SCHEDULE[..2], "for want of outside calls");
        assert!(schedule(0, 0).is_empty());
        const { assert!(MAX_CALL_MS < 45_000) };
    }
}
