//! When content that is paid for may be handed out (again).

use cardano::{
    TxHash,
    chain::{Chain, Inclusion},
    slots::Millis,
};
use outbox::Sleep;
use sql::{Database, DatabaseError, Rows};
use std::pin::Pin;

use super::{Checkout, Unavailable, is_refunded};
use crate::{
    payment::{self, PaymentRecord},
    purchase::Owned,
};

/// What must be left of the time to post a result, where none is posted yet: ticks of the watcher, and then some.
const RESULT_MARGIN_MS: Millis = 8 * 60_000;
/// How long it takes in ms until a result is asked for, each time, and then until it is looked whether it is posted: the locks
/// of a block are noticed within a moment, and their results posted together.
const RESULT_WAITS_MS: [(Millis, Millis); 4] = [(1_000, 0), (0, 1_000), (0, 2_000), (0, 4_000)];

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

/// Who posts results.
pub trait Results {
    /// Has the result of a lock posted that is in a block: what came of it is on record. Whether they answered; otherwise they
    /// need not be asked again.
    fn post<'a>(&'a self, lock: &'a TxHash) -> Pin<Box<dyn Future<Output = bool> + 'a>>;
}

/// Nobody who could be asked.
impl Results for () {
    fn post<'a>(&'a self, _: &'a TxHash) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(std::future::ready(false))
    }
}

impl<D: Database, C, V, Z: Sleep, K> Checkout<'_, D, C, V, Z, K> {
    /// That the content of a lock that is in a block can be given, to who brought the payment just now or comes back. Where it
    /// is given with its result only, whoever posts that is asked to do so now, and has some seconds: as long as a node holds a
    /// step of the buyer's, it refuses the result, and the buyer has nothing.
    ///
    /// # Errors
    /// [`Unavailable::NoResult`].
    pub(super) fn must_have_its_result<'a>(
        &'a self,
        lock: &'a TxHash,
        comes_back: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), Unavailable>> + 'a>> {
        Box::pin(async move {
            // Who comes back may do so as often as they like.
            let mut waits = RESULT_WAITS_MS.into_iter().take(if comes_back { 2 } else { usize::MAX });
            let mut asks = true;
            loop {
                let record: Option<PaymentRecord> = self.database.run(payment::record(lock)).await?.first_json()?;
                let record = record.ok_or_else(|| DatabaseError(format!("the payment {lock} is gone")))?;
                let stands = record.status.is_some() && !is_refunded(record.status);
                let in_time = |end| !record.results_first && stands && (!comes_back || is_in_time(end, self.clock));
                if record.awaits.is_none_or(in_time) {
                    return Ok(());
                }
                // Of a lock that a node had before us ticks alone post the result, and its block is waited for.
                asks &= record.results_first && stands && !record.result_failed && !record.entry.was_public;
                let Some((before, after)) = waits.next().filter(|_| asks) else {
                    return Err(Unavailable::NoResult(*lock));
                };
                self.sleep.sleep(before).await;
                asks = self.results.post(lock).await;
                self.sleep.sleep(after).await;
            }
        })
    }
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
