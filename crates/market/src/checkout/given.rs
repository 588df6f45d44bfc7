//! When content that is paid for may be handed out (again).

use cardano::{
    TxHash,
    chain::{Chain, Inclusion},
    slots::Millis,
};
use sql::{Database, DatabaseError, Rows};

use super::Unavailable;
use crate::{
    listing::DeliveryMode,
    payment::{self, PaymentRecord},
    purchase::Owned,
};

/// What must be left of the time to post a result, where none is posted yet: ticks of the watcher, and then some.
const RESULT_MARGIN_MS: Millis = 8 * 60_000;
/// How old the block of a lock may be of which nothing is on record yet. A lock is in a block twelve minutes before the time
/// for its result is over at the latest.
const FRESH_MS: Millis = 4 * 60_000;

/// Content is handed out again only for what is as certain as it had to be the first time: whoever proves to have paid
/// a moment ago has no more to show than the payment itself. And never for a lock that may end without a result: its money
/// can be taken back. `clock` is that of escrow matters. Asks nothing where one block is enough.
///
/// # Errors
/// [`Unavailable::Unconfirmed`], [`Unavailable::NoResult`], or what cannot be asked.
pub async fn must_be_given(
    database: &impl Database,
    chain: &impl Chain,
    owned: &Owned,
    wanted: u64,
    clock: Millis,
) -> Result<(), Unavailable> {
    must_have_result(owned, clock)?;
    if wanted == 0 {
        return Ok(());
    }
    let record = database.run(payment::record(&owned.id)).await?;
    let (_, newer) = confirmations_of(&record, chain, &owned.id, wanted).await?;
    if newer >= wanted { Ok(()) } else { Err(Unavailable::Unconfirmed(owned.id)) }
}

/// Whether a purchase has its result, or time for it.
///
/// # Errors
/// [`Unavailable::NoResult`].
pub(super) fn must_have_result(owned: &Owned, clock: Millis) -> Result<(), Unavailable> {
    let given = owned.awaits.is_none_or(|end| is_in_time(end, clock));
    if given { Ok(()) } else { Err(Unavailable::NoResult(owned.id)) }
}

/// Whether a payment that was taken up and is in this block gives its content.
///
/// # Errors
/// [`Unavailable::NoResult`].
pub(super) fn must_be_in_time(record: &PaymentRecord, block: &Inclusion, clock: Millis) -> Result<(), Unavailable> {
    let given = match (record.mode, record.awaits) {
        (DeliveryMode::Instant, _) => true,
        (DeliveryMode::Protected, Some(end)) => is_in_time(end, clock),
        (DeliveryMode::Protected, None) => {
            record.status.is_some() || !record.entry.was_public && clock <= block.time_ms.saturating_add(FRESH_MS)
        }
    };
    if given { Ok(()) } else { Err(Unavailable::NoResult(record.entry.tx)) }
}

const fn is_in_time(end: Millis, clock: Millis) -> bool {
    clock.saturating_add(RESULT_MARGIN_MS) <= end
}

/// How many newer blocks there are than that of a purchase on record, as far as is asked for: none is, where none is waited
/// for.
pub(super) async fn confirmations_of(
    record: &Rows,
    chain: &impl Chain,
    purchase: &TxHash,
    wanted: u64,
) -> Result<(Inclusion, u64), Unavailable> {
    let block = record.first_json::<PaymentRecord>()?.and_then(|record| record.entry.block);
    let block = block.ok_or_else(|| DatabaseError(format!("the payment of {purchase} is in no block")))?;
    if wanted == 0 {
        return Ok((block, 0));
    }
    let tip = chain.tip().await?;
    // Newer blocks count only above a block that still has it: a rollback may have taken the one on record.
    let shown = chain.inclusion_of(purchase).await?;
    Ok((block, shown.map_or(0, |shown| tip.height.saturating_sub(shown.height))))
}
