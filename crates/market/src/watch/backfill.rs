//! Reads the transaction history of the contract's address, to find steps of escrows by other parties that were not
//! found in another way.
//!
//! Strangers can add to this history. Therefore it is read last and within a bounded number of calls, and transactions
//! that cannot be decoded are skipped.

use std::collections::BTreeMap;

use cardano::{
    TxHash, TxRef,
    chain::ChainError,
    history::{AddressTransaction, Place},
    slots::Millis,
    tx::TransactionUtxos,
};
use escrow::Deployment;
use outbox::{ENTRY, Entry, EntryState};
use serde::Deserialize;
use serde_json::json;
use sql::{Both, Database, Write};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{MAX_PROVIDER_FAILURES, Tick},
    reconcile::found_in,
    restore::unknown_escrows,
    stored::{self, UnreadTransaction},
};
use crate::{
    contents::Contents,
    escrow_steps::{IncludedTx, knows},
    port_error::PortError,
};

/// Number of transactions per page of the history.
const PAGE: usize = 50;
/// Maximum number of other parties' transactions that one run of the watcher reads.
const MAX_FOREIGN: u32 = 16;
/// Number of provider calls that it takes to read one transaction: one for its bytes, and one for whether its scripts
/// succeeded.
const CALLS_PER_TRANSACTION: u32 = 2;

/// Remaining allowance of a run of the watcher: how many of other parties' transactions it may still read, and how many
/// consecutive provider failures it still tolerates.
struct Allowance {
    foreign: u32,
    provider_failures: u32,
}

/// Result of reading a transaction from the history of the contract's address.
enum HistoryEntry {
    /// Nothing to record, because the transaction does not concern this service or can never be decoded.
    Passed,
    /// The transaction concerns an escrow of this service.
    Found(Box<IncludedTx>),
    /// The provider does not return the transaction at present.
    NotNow,
    /// This run of the watcher has too few provider calls left.
    NoCalls,
}

/// Column that says whether the escrow steps of an entry's transaction are recorded.
#[derive(Deserialize)]
struct HasSteps {
    #[serde(deserialize_with = "sql::flag")]
    has_steps: bool,
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Reads further pages of the transaction history of the contract's address, until this run of the watcher has no
    /// provider calls left. Returns whether new steps of known escrows were found.
    pub(super) async fn backfill(
        &mut self,
        deployment: &Deployment,
        mut next: Option<Place>,
        unread: Vec<UnreadTransaction>,
    ) -> Result<bool, PortError> {
        let known = self.report.steps;
        let address = deployment.address().to_string();
        let mut allowance = Allowance { foreign: MAX_FOREIGN, provider_failures: 0 };
        let mut again = unread.into_iter().map(Into::into).collect();
        while self.calls_left() > 0 {
            let page = match self.ports.chain.address_transactions(&address, next, PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    self.report.note(&"the address's history", &error);
                    break;
                }
            };
            let full = page.len() == PAGE;
            // Transactions above this run's newest block are left out, because a rollback of them would go unnoticed.
            let page: Vec<_> = page.into_iter().filter(|listed| listed.place.height <= self.view.tip.height).collect();
            let last = self.read_page(&page, std::mem::take(&mut again), &mut allowance).await?;
            let Some(last) = last else { break };
            next = Some(Place { position: last.position.saturating_add(1), ..last });
            if !full || page.last().is_none_or(|listed| listed.place != last) {
                break;
            }
        }
        self.view.read_to = next.map_or(0, |next| next.height);
        Ok(self.report.steps > known)
    }

    /// Reads the transactions on one page of the address's history until the calls to the provider are used up. Returns
    /// the position after which reading continues.
    async fn read_page(
        &mut self,
        page: &[AddressTransaction],
        again: Vec<AddressTransaction>,
        allowance: &mut Allowance,
    ) -> Result<Option<Place>, PortError> {
        let listed: Vec<&AddressTransaction> = page.iter().chain(&again).collect();
        let mut ours = self.own_entries(&listed).await?;
        let (mut found, mut marks, mut last): (Vec<IncludedTx>, _, _) = (vec![], vec![], None);
        for (place, listed) in listed.into_iter().enumerate() {
            let is_new = place < page.len();
            let read = match ours.remove(&listed.tx) {
                Some(None) => HistoryEntry::Passed,
                Some(Some(entry)) => self.read_own(entry).await,
                None => self.read_foreign(listed, &found, allowance).await,
            };
            match read {
                HistoryEntry::NoCalls if is_new => break,
                HistoryEntry::NoCalls => continue,
                HistoryEntry::NotNow if is_new => marks.push(note_unread(listed, self.ports.now)),
                HistoryEntry::NotNow => marks.push(note_retry(&listed.tx, self.ports.now)),
                HistoryEntry::Passed | HistoryEntry::Found(_) if !is_new => {
                    marks.push(sql::write!("DELETE FROM chain_unread WHERE tx_id = ?1", listed.tx))
                }
                HistoryEntry::Passed | HistoryEntry::Found(_) => {}
            }
            if let HistoryEntry::Found(one) = read {
                found.push(*one);
            }
            if is_new {
                self.report.read = self.report.read.saturating_add(1);
                last = Some(listed.place);
            }
        }
        self.record(found).await?;
        marks.extend(last.map(|place| stored::advance(place, self.view.rollbacks)));
        self.write(marks).await?;
        Ok(last)
    }

    /// Returns the outbox entries of our own transactions on a page, by transaction id. An entry whose steps are
    /// already recorded is replaced by `None`.
    async fn own_entries(&self, page: &[&AddressTransaction]) -> Result<BTreeMap<TxHash, Option<Entry>>, PortError> {
        if page.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<TxHash> = page.iter().map(|listed| listed.tx).collect();
        let read = sql::read!(
            "SELECT {ENTRY}, state = 'included' AND EXISTS (SELECT 1 FROM escrow_steps WHERE tx_id = outbox.tx_id) \
               AS has_steps FROM outbox WHERE tx_id IN (SELECT value FROM json_each(?1))",
            json!(ids).to_string()
        );
        let entries: Vec<Both<Entry, HasSteps>> = self.ports.database.fetch(read).await?;
        let unread = |Both(entry, HasSteps { has_steps }): Both<Entry, _>| (entry.tx, (!has_steps).then_some(entry));
        Ok(entries.into_iter().map(unread).collect())
    }

    async fn read_own(&mut self, mut entry: Entry) -> HistoryEntry {
        let read = match entry.block.filter(|_| entry.state == EntryState::Included) {
            Some(block) => found_in(&entry, &block),
            None if self.calls_left() == 0 => return HistoryEntry::NoCalls,
            None => self.observe(&mut entry).await.map(|(_, found)| found),
        };
        match read {
            Ok(Some(found)) => HistoryEntry::Found(Box::new(found)),
            // The history lists the transaction, so a provider that shows no block with it lags behind.
            Ok(None) if entry.state != EntryState::Included => HistoryEntry::NotNow,
            Ok(None) => HistoryEntry::Passed,
            Err(error) => {
                self.report.note(&entry.tx, &error);
                HistoryEntry::NotNow
            }
        }
    }

    async fn read_foreign(
        &mut self,
        listed: &AddressTransaction,
        before: &[IncludedTx],
        allowance: &mut Allowance,
    ) -> HistoryEntry {
        if allowance.foreign == 0
            || allowance.provider_failures >= MAX_PROVIDER_FAILURES
            || self.calls_left() < CALLS_PER_TRANSACTION
        {
            return HistoryEntry::NoCalls;
        }
        allowance.foreign = allowance.foreign.saturating_sub(1);
        let read = match self.ports.chain.transaction(&listed.tx).await {
            Ok(Some(cbor)) => match TransactionUtxos::read(&cbor) {
                Ok(utxos) => self.classify(listed, utxos, before).await,
                Err(error) => {
                    self.report.note(&listed.tx, &error);
                    self.report.skipped = self.report.skipped.saturating_add(1);
                    return HistoryEntry::Passed;
                }
            },
            Ok(None) => Ok(HistoryEntry::NotNow),
            Err(error) => Err(error.into()),
        };
        let served = !matches!(
            &read,
            Err(PortError::Chain(error)) if error.rejects_all_calls() || matches!(error, ChainError::Unavailable(_))
        );
        allowance.provider_failures = if served { 0 } else { allowance.provider_failures.saturating_add(1) };
        let read = read.unwrap_or_else(|error| {
            self.report.note(&listed.tx, &error);
            HistoryEntry::NotNow
        });
        self.report.skipped = self.report.skipped.saturating_add(u32::from(matches!(read, HistoryEntry::NotNow)));
        read
    }

    /// Returns a transaction's effects if its scripts succeeded and it spent one of our escrows. Escrows created by an
    /// earlier transaction on the same page of the history count too.
    async fn classify(
        &mut self,
        listed: &AddressTransaction,
        utxos: TransactionUtxos,
        before: &[IncludedTx],
    ) -> Result<HistoryEntry, PortError> {
        let goes_on = |input: &TxRef| before.iter().any(|found| found.utxos.id == input.tx);
        if !utxos.spent.iter().any(goes_on) {
            let ours = sql::read!(
                "SELECT purchase_id FROM escrows WHERE utxo IN (SELECT value FROM json_each(?1)) LIMIT 1",
                json!(utxos.spent.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
            );
            let ours: Option<TxHash> = self.ports.database.fetch(ours).await?;
            if ours.is_none() {
                if let (Some(deployment), Some(seller)) = (self.ports.deployment, &self.view.seller) {
                    self.report.alarms.extend(unknown_escrows(&utxos, deployment, seller));
                }
                return Ok(HistoryEntry::Passed);
            }
        }
        Ok(match self.ports.chain.inclusion_of(&listed.tx).await? {
            Some(block) if block.valid && knows(&self.view.tip, &block) => HistoryEntry::Found(Box::new(IncludedTx {
                utxos,
                height: listed.place.height,
                time_ms: listed.time_ms,
            })),
            Some(block) if !block.valid => HistoryEntry::Passed,
            _ => HistoryEntry::NotNow,
        })
    }
}

/// Builds the statement that stores that a transaction could not be read, so that a later run of the watcher reads it.
fn note_unread(listed: &AddressTransaction, now: Millis) -> Write {
    sql::write!(
        "INSERT INTO chain_unread (tx_id, height, position, at_ms, listed_at_ms, tried_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5) \
         ON CONFLICT (tx_id) DO UPDATE SET tried_at_ms = excluded.tried_at_ms",
        listed.tx,
        listed.place.height,
        listed.place.position,
        listed.time_ms,
        now
    )
}

/// Builds the statement that records another attempt to read a transaction.
fn note_retry(tx: &TxHash, now: Millis) -> Write {
    sql::write!("UPDATE chain_unread SET tried_at_ms = ?2 WHERE tx_id = ?1", tx, now)
}
