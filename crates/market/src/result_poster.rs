//! Posts the result of a lock as soon as a node has accepted the lock.
//!
//! ```text
//! lock accepted ──> result built on its output ──> evaluated with that output ──> stored ──> submitted
//! ```
//!
//! Both transactions wait in the mempool and usually share a block, so protection costs no further block. If an action
//! of the buyer is included first, the result is built on the output of that action. Failures are retried by the
//! request within seconds, and by the watcher.

use std::{collections::BTreeSet, sync::LazyLock};

use cardano::{
    ContentHash, TxHash, TxRef,
    chain::{Chain, ChainError, Utxo},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::Millis,
    tx::build::{BuiltTx, Wallet},
};
use escrow::{
    Deployment,
    plan::{ChainTime, DraftError, Escrow, Planner, Step},
};
use outbox::{Draft, ENTRY_JSON, Entry, EntryState, Kind, Outbox, OutboxError, write_down};
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, statement};

use crate::{
    escrow_steps::{Recorded, Spending, StepRecorder, escrow_in, rollbacks},
    platform::{MIN_FUNDS, PlatformWallet, pays_alone},
    port_error::from_by_way_of,
    transitions,
};

/// Maximum number of attempts when other results take the wallet's outputs.
const MAX_TRIES: usize = 4;

/// The platform as the seller of protected sales.
#[derive(Clone, Copy)]
pub struct Seller<'a> {
    pub deployment: &'a Deployment,
    /// Key that signs results and owns the wallet that pays for them.
    pub key: &'a SigningKey,
}

/// Reason why no result was posted. It can be retried, and the watcher will.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The transaction cannot be built, or the ledger rejects it.
    #[error(transparent)]
    Draft(#[from] DraftError),
    #[error("the lock makes no escrow at this contract")]
    NoEscrow,
    #[error("other transactions took the wallet's outputs first")]
    Busy,
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

from_by_way_of!(PostError, OutboxError: DatabaseError, ChainError);

pub struct ResultPoster<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    pub seller: Seller<'a>,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// Clock for escrow deadlines, POSIX ms.
    pub clock: Millis,
}

/// Stored state of a lock's escrow.
#[derive(Default, Deserialize)]
struct Posting {
    /// Current output of the escrow.
    output: Option<TxRef>,
    /// Pending or included result.
    result: Option<Entry>,
}

impl<D: Database, C: Chain + Evaluate> ResultPoster<'_, D, C> {
    /// Posts the result of an accepted lock unless one is pending. Returns the entry of the result.
    ///
    /// # Errors
    /// The reason why nothing could be posted now.
    pub async fn post(&self, lock: &Entry, result: ContentHash) -> Result<Entry, PostError> {
        let mut follows = true;
        for attempt in 0..MAX_TRIES {
            let (escrow, pending) = self.escrow(lock).await?;
            if let Some(entry) = pending {
                return Ok(entry);
            }
            let (tip_slot, address) = (self.chain.recent_tip().await?.slot, self.seller.key.enterprise_address());
            let wallet =
                PlatformWallet::read(self.database, self.chain, address, tip_slot, self.now, MIN_FUNDS).await?;
            let built = match self.build(lock, &escrow, result, (&wallet, tip_slot), attempt).await {
                // Another result has taken the output of the wallet; the next attempt selects another one.
                Err(error) if wallet.utxos.iter().any(|utxo| error.names(&utxo.reference)) => continue,
                // The buyer may have acted first; the result is then built on that output.
                Err(DraftError::Refused(_)) if follows && lock.state == EntryState::Included => {
                    follows = false;
                    self.follow(&escrow.utxo.reference).await?;
                    continue;
                }
                built => built?,
            };
            let Some(mut entry) = self.write(lock, &escrow, &built).await? else { continue };
            let outbox = Outbox { database: self.database, chain: self.chain, hook: &transitions::statements };
            let refused = outbox.submit_first(&mut entry, Some(&wallet.snapshot), self.now).await?;
            match refused {
                None => return Ok(entry),
                Some(_) if follows && lock.state == EntryState::Included => {
                    follows = false;
                    self.follow(&escrow.utxo.reference).await?;
                }
                Some(reason) => return Err(DraftError::Refused(reason).into()),
            }
        }
        Err(PostError::Busy)
    }

    /// Returns the current escrow, and its pending result.
    async fn escrow(&self, lock: &Entry) -> Result<(Escrow, Option<Entry>), PostError> {
        let read = statement!(
            format!(
                "SELECT json_object('output', (SELECT utxo FROM escrows WHERE purchase_id = ?1), 'result', json(({})))",
                *LIVE_RESULT
            ),
            lock.tx
        );
        let Posting { output, result } = self.database.run(read).await?.first_json()?.unwrap_or_default();
        let cbor = match output {
            Some(output) if output.tx != lock.tx => self.chain.transaction(&output.tx).await?,
            _ => Some(lock.cbor.clone()),
        };
        let escrow = cbor.and_then(|cbor| escrow_in(&cbor, output.as_ref(), self.seller.deployment));
        Ok((escrow.ok_or(PostError::NoEscrow)?, result))
    }

    /// Builds the signed result, paid by a single output if one is large enough. The lock's hash and the attempt select
    /// it, so that concurrent requests rarely collide.
    async fn build(
        &self,
        lock: &Entry,
        escrow: &Escrow,
        result: ContentHash,
        (wallet, tip_slot): (&PlatformWallet, u64),
        attempt: usize,
    ) -> Result<BuiltTx, DraftError> {
        let planner =
            Planner { deployment: self.seller.deployment, parameters: &wallet.parameters, slots: &api_types::SLOTS };
        let time = ChainTime { tip_slot, now: self.clock };
        let mut plan = planner.plan(escrow, &Step::SubmitResult(result), time)?;
        if lock.state != EntryState::Included {
            // If the lock expires, the result must not reserve outputs any longer.
            plan.validity.until = plan.validity.until.min(lock.valid_until);
        }
        let alone: Vec<&Utxo> = wallet.utxos.iter().filter(|utxo| pays_alone(utxo)).collect();
        let spread =
            lock.tx.as_bytes().iter().fold(attempt, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        let chosen = spread.checked_rem(alone.len()).and_then(|at| alone.get(at)).map(|utxo| (*utxo).clone());
        let from: Vec<Utxo> = match chosen {
            Some(utxo) => vec![utxo],
            None => [wallet.utxos.as_slice(), &wallet.unconfirmed].concat(),
        };
        let mut unconfirmed: Vec<Utxo> = match lock.state {
            EntryState::Included => vec![],
            _ => vec![escrow.utxo.clone()],
        };
        unconfirmed.extend(from.iter().filter(|utxo| wallet.unconfirmed.contains(utxo)).cloned());
        let wallet = Wallet { address: wallet.address, utxos: &from, reserved: &BTreeSet::new() };
        let draft = planner.draft_chained(self.chain, plan, &wallet, &unconfirmed).await?;
        Ok(draft.sign(&[self.seller.key])?)
    }

    /// Stores the result; `None` if another request took its escrow or the wallet's output first.
    async fn write(&self, lock: &Entry, escrow: &Escrow, built: &BuiltTx) -> Result<Option<Entry>, DatabaseError> {
        let purpose = purpose(&escrow.utxo.reference);
        let draft = Draft::built(Kind::Result, purpose, self.seller.key.enterprise_address(), built);
        let draft = Draft { acts_on: vec![lock.tx], ..draft };
        Entry::first(&self.database.run(write_down(&draft, self.now)).await?)
    }

    async fn follow(&self, from: &TxRef) -> Result<Spending, PostError> {
        let tip = self.chain.tip().await?;
        let rollbacks = Some(self.database.run(rollbacks()).await?.first_json()?.unwrap_or(0));
        let seller = Some(self.seller.key.enterprise_address());
        let steps = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks, seller };
        Ok(steps.follow(from, &mut Recorded::default()).await?)
    }
}

/// Outbox purpose of actions on an escrow.
pub(crate) fn purpose(escrow: &TxRef) -> String {
    format!("escrow:{escrow}")
}

/// SQL for the open or confirmed result of the lock `?1`, as [`Entry`].
static LIVE_RESULT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ENTRY_JSON} FROM outbox_purchases op JOIN outbox ON outbox.tx_id = op.tx_id WHERE op.purchase_id = ?1 \
           AND outbox.kind = 'result' AND outbox.state IN ('claimed', 'submitted', 'included') \
         ORDER BY outbox.state = 'included' DESC, outbox.created_at_ms DESC LIMIT 1"
    )
});

/// Statement that reads the open or confirmed result of a lock.
pub(crate) fn live_result(lock: &TxHash) -> Statement {
    statement!(LIVE_RESULT.as_str(), lock)
}
