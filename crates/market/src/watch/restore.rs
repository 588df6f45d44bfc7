//! Recovers payments by our own wallets after a restore from a backup.
//!
//! ```text
//! make restore ──> restored, unread_wallets: these wallets cannot pay until they have been read
//! tick ──> transactions of service wallets ──> their metadata names the listing: a purchase
//!      ──> then those of the platform ──> their metadata names the purchase: its creator is not paid again
//! ```
//!
//! Only transactions signed by the wallet's own key count, so strangers cannot create purchases. Reading starts when
//! everything that was submitted before the restore is in a block or has expired. Later transactions are in the outbox
//! and are not read.
//!
//! The watcher does this, and not a command of the operator, because whoever restores a database may not know of the
//! command, and because each wallet can pay again as soon as the watcher has read it.

use api_types::{Alarm, AlarmName};
use cardano::{
    Address, ContentHash, Lovelace, TxHash,
    chain::{ChainError, Inclusion},
    history::{AddressTransaction, Place},
    keys::SigningKey,
    slots::Millis,
    tx::{SignedTx, TransactionUtxos},
};
use escrow::{Deployment, plan::Escrow};
use outbox::{Decision, Entry, EntryState, Kind, MAX_VALID_MS, NewEntry, Provenance, change, write_down};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Read, Write};

use super::{ArbiterClient, Keys, Ledger, context::Tick};
use crate::{
    account, catalogue,
    claim::NewPayment,
    contents::Contents,
    listing::{DeliveryMode, ListingId, MIN_PRICE},
    port_error::PortError,
    subject, transitions,
};

/// Time in ms to wait after the last transaction from before a restore was included or has expired. After this time,
/// all nodes of a provider are assumed to show the transaction's block.
const DEEP_AFTER_MS: Millis = 2 * 60_000;
/// Maximum number of wallets read per run of the watcher.
const MAX_WALLETS: u32 = 20;
/// Number of transactions per page of a wallet's history.
const PAGE: usize = 50;

/// A row of `unread_wallets`, with the time of the restore.
#[derive(Deserialize)]
struct UnreadWallet {
    wallet: Address,
    height: u64,
    position: u64,
    restored: Millis,
}

/// Returns an alarm for each escrow with this seller that a transaction creates. The transaction must belong to no
/// known purchase. Its payer may still present the transaction, and the buyer can take the money back from the escrow.
pub(super) fn unknown_escrows(
    utxos: &TransactionUtxos,
    deployment: &Deployment,
    seller: &Address,
) -> impl Iterator<Item = Alarm> {
    escrows_of(utxos, deployment, seller).map(|escrow| {
        let (utxo, locked) = (escrow.utxo.reference, escrow.utxo.value.lovelace);
        let message =
            format!("the escrow {utxo} of {locked} lovelace names this seller, but belongs to no known purchase");
        Alarm::new(AlarmName::UnknownEscrow, message)
    })
}

/// Returns the escrows that a transaction creates and that name this seller.
fn escrows_of(utxos: &TransactionUtxos, deployment: &Deployment, seller: &Address) -> impl Iterator<Item = Escrow> {
    let escrows = utxos.created.iter().filter_map(|made| Escrow::read(made.clone(), deployment).ok());
    escrows.filter(|escrow| escrow.datum.seller.key_address().as_ref() == Some(seller))
}

/// Statements that insert an included transaction, its payment, and the effects of its inclusion.
type Recording = (Write<Option<Entry>>, Option<Write>, Option<Write<Option<Entry>>>, Vec<Write>);

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Reads the transactions that wallets made since the backup, with half of the provider calls that this run of the
    /// watcher has left. Returns whether purchases were restored. Failures are noted, and later runs retry.
    pub(super) async fn read_restored(&mut self) -> bool {
        let kept = self.calls_left().div_ceil(2);
        let mut found = false;
        match self.unread_wallets().await {
            Ok(wallets) => {
                for wallet in wallets {
                    match self.read_wallet(&wallet, kept).await {
                        Ok(any) => found |= any,
                        Err(error) => self.report.note(&wallet.wallet, &error),
                    }
                }
            }
            Err(error) => self.report.note(&"wallets since the restore", &error),
        }
        found
    }

    async fn unread_wallets(&self) -> Result<Vec<UnreadWallet>, DatabaseError> {
        let mut statements: Vec<Write> = vec![];
        // The platform comes last, because a payout refers to a purchase.
        if let Some(platform) = self.platform() {
            statements.extend([
                sql::write!(
                    "INSERT INTO unread_wallets (wallet, height, position) SELECT ?1, height, 0 FROM restored \
                     WHERE platform IS NULL AND NOT EXISTS (SELECT 1 FROM unread_wallets)",
                    platform
                ),
                sql::write!(
                    "UPDATE restored SET platform = ?1 WHERE platform IS NULL \
                     AND EXISTS (SELECT 1 FROM unread_wallets WHERE wallet = ?1)",
                    platform
                ),
            ]);
        }
        let (_, wallets) = self.ports.database.batch((statements, wallets_to_read(self.view.tip.time_ms))).await?;
        Ok(wallets)
    }

    /// Returns the platform's wallet if its key is configured, even if this watcher does not sell.
    fn platform(&self) -> Option<Address> {
        self.ports.keys.seller().map(SigningKey::enterprise_address)
    }

    /// Reads a wallet page by page, and stores the reading position after each page. Returns whether something was
    /// recorded.
    async fn read_wallet(&mut self, unread: &UnreadWallet, kept: u32) -> Result<bool, PortError> {
        let mut any = false;
        let mut next = Place { height: unread.height, position: unread.position };
        let end = unread.restored.saturating_add(MAX_VALID_MS);
        while self.calls_left() > kept {
            let listed = self.ports.chain.address_transactions(&unread.wallet.to_string(), Some(next), PAGE).await?;
            let full = listed.len() == PAGE;
            let before: Vec<AddressTransaction> = listed.into_iter().filter(|listed| listed.time_ms <= end).collect();
            let is_last = !full || before.len() < PAGE;
            let ids: Vec<TxHash> = before.iter().map(|listed| listed.tx).collect();
            let known = self.ports.database.fetch(known(&ids)).await?;
            let (mut statements, mut is_read) = (vec![], true);
            for listed in before {
                if !known.contains(&listed.tx) {
                    if self.calls_left() <= kept {
                        is_read = false;
                        break;
                    }
                    let found = self.found_in(&unread.wallet, &listed.tx).await?;
                    if found.is_some() {
                        let note = format!(
                            "{} of {} is recorded from the chain: the database had lost it",
                            listed.tx, unread.wallet
                        );
                        self.report.notes.push(note);
                        any = true;
                    }
                    statements.extend(found);
                }
                next = Place { height: listed.place.height, position: listed.place.position.saturating_add(1) };
            }
            let position = match is_last && is_read {
                true => sql::write!("DELETE FROM unread_wallets WHERE wallet = ?1", unread.wallet),
                false => read_up_to(&unread.wallet, next),
            };
            self.ports.database.batch((statements, position)).await?;
            if is_last || !is_read {
                break;
            }
        }
        Ok(any)
    }

    /// Returns the statements that record a payment signed by this wallet. Returns `None` if the transaction is no
    /// payment, its scripts failed, or it cannot be decoded.
    async fn found_in(&self, wallet: &Address, tx: &TxHash) -> Result<Option<Recording>, PortError> {
        let cbor = match self.ports.chain.transaction(tx).await {
            Ok(Some(cbor)) => cbor,
            Ok(None) => return Err(ChainError::Unavailable(format!("no bytes of {tx}")).into()),
            Err(ChainError::Malformed(_) | ChainError::TooLong) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let subject = SignedTx::parse(&cbor).ok().and_then(|tx| subject::read(&tx, wallet));
        let Some(subject) = subject else { return Ok(None) };
        let Some(block) = self.ports.chain.inclusion_of(tx).await? else {
            return Err(ChainError::Unavailable(format!("no block of {tx}")).into());
        };
        if !block.valid {
            return Ok(None);
        }
        let utxos = TransactionUtxos::read(&cbor).ok();
        let ends = utxos.as_ref().and_then(|utxos| utxos.ttl);
        let valid_until = ends.unwrap_or_else(|| block.slot.saturating_add(1));
        if let Ok(purchase) = subject.parse::<TxHash>() {
            if self.platform() != Some(*wallet) {
                return Ok(None);
            }
            let purpose = format!("payout:{purchase}");
            let new = NewEntry {
                tx: *tx,
                kind: Kind::Payout,
                purpose,
                wallet: Some(*wallet),
                cbor,
                valid_until,
                provenance: Provenance::Foreign,
                spends: vec![],
                collateral: vec![],
                acts_on: vec![purchase],
                guard: None,
            };
            return Ok(Some(self.included(new, None, &block)?));
        }
        let (Ok(listing), Some(utxos)) = (subject.parse(), utxos) else { return Ok(None) };
        self.payment_in(wallet, &listing, &utxos, (&cbor, valid_until), &block).await
    }

    /// Returns the statements that record a service wallet's payment for a listing. Returns `None` if the payment fits
    /// neither delivery mode.
    async fn payment_in(
        &self,
        wallet: &Address,
        listing: &ListingId,
        utxos: &TransactionUtxos,
        (cbor, valid_until): (&[u8], u64),
        block: &Inclusion,
    ) -> Result<Option<Recording>, PortError> {
        let reads = (catalogue::terms(listing), account::by_wallet(wallet));
        let (terms, account) = self.ports.database.batch(reads).await?;
        let (Some(terms), Some(account)) = (terms, account) else { return Ok(None) };
        let seller = terms.seller_address.to_string();
        // The price may have changed since the payment, or since the backup.
        let mut paid = utxos.created.iter().filter(|made| made.address == seller).map(|made| made.value.lovelace);
        let (mode, amount) = match (paid.find(|paid| *paid >= MIN_PRICE), self.locked_price(utxos)) {
            (Some(paid), _) => (DeliveryMode::Instant, paid),
            (None, Some(price)) => (DeliveryMode::Protected, price),
            (None, None) => return Ok(None),
        };
        let payment = NewPayment {
            tx: utxos.id,
            cbor,
            valid_until,
            provenance: Provenance::Foreign,
            listing_id: &terms.id,
            mode,
            payer: *wallet,
            amount,
            header: ContentHash::of(cbor),
            terms_digest: None,
            identifier: None,
            inputs: &[],
            account: Some(&account),
            content: None,
            checked: 0,
            replaced: 0,
        };
        Ok(Some(self.included(payment.entry(), Some(payment.insert(block.time_ms)), block)?))
    }

    /// Returns the price that a transaction locks in an escrow with the platform as seller: the locked amount without
    /// the buyer's collateral. `None` if the transaction creates no such escrow.
    fn locked_price(&self, utxos: &TransactionUtxos) -> Option<Lovelace> {
        let escrow = escrows_of(utxos, self.ports.deployment?, &self.platform()?).next()?;
        escrow.utxo.value.lovelace.checked_sub(escrow.datum.collateral_return)
    }

    /// Returns the statements that insert the outbox entry of an already included transaction, its payment, and the
    /// effects of its inclusion. No outputs are reserved.
    fn included(&self, new: NewEntry, payment: Option<Write>, block: &Inclusion) -> Result<Recording, DatabaseError> {
        let now = self.ports.now;
        let written = write_down(&new, now);
        let NewEntry { tx, kind, cbor, valid_until, provenance, .. } = new;
        let state = EntryState::Claimed;
        let entry =
            Entry { tx, kind, cbor, state, valid_until, attempts: 1, attempted_at_ms: now, provenance, block: None };
        let decision = Decision::Include(*block);
        Ok((written, payment, change(&entry, &decision), transitions::statements(&entry, &decision)?))
    }
}

/// Builds the query that returns a row while transactions that wallets made after the backup are still unread.
pub(super) fn has_unread_wallets() -> Read<Option<String>> {
    sql::read!(
        "SELECT 'unread' WHERE EXISTS (SELECT 1 FROM unread_wallets) OR EXISTS (SELECT 1 FROM restored WHERE platform IS NULL)"
    )
}

/// Builds the query for the wallets whose transactions have to be read again after a restore, lowest reading position
/// first.
fn wallets_to_read(time: Millis) -> Read<Vec<UnreadWallet>> {
    sql::read!(
        "SELECT w.wallet, w.height, w.position, r.at_ms AS restored \
         FROM restored r CROSS JOIN unread_wallets w WHERE r.id = 1 AND r.at_ms + ?2 <= ?1 \
         ORDER BY w.height LIMIT {MAX_WALLETS}",
        time,
        MAX_VALID_MS.saturating_add(DEEP_AFTER_MS)
    )
}

/// Builds the query that selects the given transactions that have an outbox entry.
fn known(ids: &[TxHash]) -> Read<Vec<TxHash>> {
    sql::read!("SELECT tx_id FROM outbox WHERE tx_id IN (SELECT value FROM json_each(?1))", json!(ids).to_string())
}

fn read_up_to(wallet: &Address, next: Place) -> Write {
    sql::write!(
        "UPDATE unread_wallets SET height = ?2, position = ?3 WHERE wallet = ?1",
        *wallet,
        next.height,
        next.position
    )
}
