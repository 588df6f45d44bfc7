//! After a restore from a backup: what the chain has of the time after it. And escrows that no entry of the outbox made.
//!
//! ```text
//! make restore ──> restored, unread_wallets: nothing is paid for again meanwhile
//! tick ──> the escrow's history (backfill) ──> unknown_escrows ──> a lock by an own quote: a purchase
//!                                                              └─> anything else: an alarm
//!      ──> the wallets' transactions ──> what they pay for stands in their metadata: purchases, payouts
//! ```
//!
//! A payment that was sent before the restore may come into a block minutes later, so reading begins after that.

use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
    chain::{Chain, Inclusion, Tip},
    history::{History, Place},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::Millis,
    tx::{SignedTx, TransactionUtxos},
};
use escrow::{Datum, Deployment, State, plan::Escrow};
use outbox::{Decision, Draft, Entry, EntryState, Kind, Provenance, TransitionHook, change, write_down};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Statement, exactly, statement};
use x402_cardano::{
    escrow::{TransferMethod, listing_input_hash},
    method::{Draft as QuoteDraft, EscrowMethod, MIN_PROTECTED_PRICE, Offered, PaymentMethod, Sale},
    wire::ConfirmationPolicy,
};

use super::{Report, TickError};
use crate::{
    catalogue::ListingTerms,
    checkout::creator_part,
    limits::DAY_MS,
    listing::{DeliveryMode, ListingId},
    results::acts_on,
    subject,
    transitions::Transitions,
};

/// How long after a restore the chain may still take what was sent before it, in ms: no payment is valid for longer. As long
/// a lock's payer may take to show it (`maxTimeoutSeconds`).
const SETTLED_AFTER_MS: Millis = 5 * 60_000;
/// Unknown escrows that one tick judges, and wallets that it reads.
const MOST: u32 = 20;
/// Transactions of a wallet that are listed at once.
const PAGE: usize = 50;
/// Outside calls that adopting one transaction takes.
const CALLS_TO_ADOPT: u32 = 3;
/// Outside calls that reading wallets leaves for what is due.
const CALLS_KEPT: u32 = 8;
/// Newer blocks that a quote may have asked for.
const CONFIRMATIONS: std::ops::RangeInclusive<i8> = 0..=20;

/// What a tick reads after a restore with.
pub(super) struct Restore<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    pub deployment: Option<&'a Deployment>,
    /// The seller of record, where we act as such.
    pub seller: Option<&'a SigningKey>,
    pub tip: Tip,
    /// The clock of escrow matters, POSIX ms.
    pub clock: Millis,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// How many outside calls are left.
    pub calls_left: &'a dyn Fn() -> u32,
}

/// A row of `unknown_escrows`.
#[derive(Deserialize)]
struct Unknown {
    utxo: TxRef,
    at: Millis,
    datum: String,
    locked: Lovelace,
}

/// A row of `unread_wallets`.
#[derive(Deserialize)]
struct Unread {
    wallet: Address,
    height: u64,
    position: u64,
}

/// A payment that only the chain tells of.
struct Payment {
    listing: String,
    mode: DeliveryMode,
    payer: Address,
    price: Lovelace,
    terms_digest: Option<ContentHash>,
}

/// The statements that note what a transaction in a block made at the escrow's address in the platform's name, and that it
/// spent what was noted before.
pub(super) fn note_unknown(
    utxos: &TransactionUtxos,
    at: Millis,
    deployment: &Deployment,
    seller: &Address,
) -> Vec<Statement> {
    if !utxos.valid {
        return vec![];
    }
    let spent: Vec<String> = utxos.spent.iter().map(ToString::to_string).collect();
    let spent = statement!(
        "UPDATE unknown_escrows SET spent = 1 WHERE utxo IN (SELECT value FROM json_each(?1))",
        json!(spent).to_string()
    );
    let made = utxos.made.iter().filter(|made| made.value.lovelace >= MIN_PROTECTED_PRICE);
    let escrows = made.filter_map(|made| Escrow::read(made.clone(), deployment).ok());
    let named = escrows.filter(|escrow| escrow.datum.seller.key_address().as_ref() == Some(seller));
    let noted = named.map(|escrow| {
        statement!(
            "INSERT INTO unknown_escrows (utxo, tx_id, at_ms, datum, locked_lovelace) \
             VALUES (?1, ?2, ?3, ?4, CAST(?5 AS INTEGER)) ON CONFLICT DO NOTHING",
            escrow.utxo.reference,
            utxos.id,
            at,
            hex::encode(escrow.datum.to_cbor()),
            escrow.utxo.value.lovelace
        )
    });
    std::iter::once(spent).chain(noted).collect()
}

/// The statement that reads what to say of escrows that are no purchase, and not a step of one: an alarm each.
pub(super) fn unknown_alarms() -> Statement {
    statement!(format!(
        "SELECT json_quote('the escrow ' || utxo || ' of ' || locked_lovelace || ' lovelace names this seller and is no \
           purchase: ' || refused) FROM unknown_escrows u WHERE refused IS NOT NULL AND spent = 0 \
           AND NOT EXISTS (SELECT 1 FROM escrow_steps WHERE tx_id = u.tx_id) \
           AND NOT EXISTS (SELECT 1 FROM outbox WHERE tx_id = u.tx_id AND state = 'included') \
           AND NOT EXISTS (SELECT 1 FROM restored WHERE only = 1 AND escrows_read = 0) ORDER BY at_ms LIMIT {MOST}"
    ))
}

impl<D: Database, C: Chain + History> Restore<'_, D, C> {
    /// Judges escrows that no entry made, once their payers have had time to show them: what locks under an own quote is a
    /// purchase. Ends the restore of escrows where nothing is left to read. Whether there is a new purchase.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
    pub async fn adopt_escrows(&self, report: &mut Report) -> Result<bool, TickError> {
        let before = self.clock.saturating_sub(SETTLED_AFTER_MS);
        let [unknown, restoring] =
            exactly(self.database.batch(vec![unjudged(before), restoring(self.tip.time_ms)]).await?)?;
        let mut adopted = false;
        if let (Some(deployment), Some(seller)) = (self.deployment, self.seller) {
            for unknown in unknown.all_json::<Unknown>()? {
                if (self.calls_left)() < CALLS_TO_ADOPT {
                    return Ok(adopted);
                }
                match self.judge(&unknown, deployment, seller).await? {
                    Ok(Some(new)) => {
                        report.notes.push(format!("the lock {} is a purchase that only the chain told of", new));
                        adopted = true;
                    }
                    Ok(None) => {}
                    Err(why) => drop(self.database.run(refuse(&unknown.utxo, why)).await?),
                }
            }
        }
        if restoring.first().is_some() {
            self.end_of_escrows(before, report).await?;
        }
        Ok(adopted)
    }

    /// Whether an unknown escrow is a lock under an own quote: its purchase is recorded then. `None` where the provider does
    /// not show it now.
    async fn judge(
        &self,
        unknown: &Unknown,
        deployment: &Deployment,
        seller: &SigningKey,
    ) -> Result<Result<Option<TxHash>, &'static str>, TickError> {
        let datum = hex::decode(&unknown.datum).ok().and_then(|cbor| Datum::from_cbor(&cbor).ok());
        let Some(datum) = datum else { return Ok(Err("its datum cannot be read")) };
        if datum.state != State::FundsLocked || datum.has_result() {
            return Ok(Err("it is not what a lock makes"));
        }
        let price = unknown.locked.saturating_sub(datum.collateral_return);
        let Some(terms) = self.listing_of(&datum, price).await? else {
            return Ok(Err("no listing here is sold by it; its buyer can take the money back"));
        };
        let parameters = self.chain.protocol_parameters().await?;
        let Some((offered, payer)) = quoted(&datum, &terms, deployment, seller, &parameters) else {
            return Ok(Err("no quote of this service asks for it; its buyer can take the money back"));
        };
        if unknown.at > datum.deadlines.pay_by {
            return Ok(Err("it came after its quote's time to pay; its buyer can take the money back"));
        }
        let tx = unknown.utxo.tx;
        let Some((cbor, block)) = self.in_block(&tx).await? else { return Ok(Ok(None)) };
        let payment = Payment {
            listing: terms.id.to_string(),
            mode: DeliveryMode::Protected,
            payer,
            price,
            terms_digest: offered.terms_digest().map(|digest| digest.0),
        };
        let mut statements = self.record_payment(&payment, tx, cbor, &block)?;
        statements.push(statement!("DELETE FROM unknown_escrows WHERE tx_id = ?1", tx));
        self.database.batch(statements).await?;
        Ok(Ok(Some(tx)))
    }

    /// The listing that a datum's request commitment names, among those of this price.
    async fn listing_of(&self, datum: &Datum, price: Lovelace) -> Result<Option<ListingTerms>, DatabaseError> {
        let listed: Vec<(String, ContentHash)> = self
            .database
            .run(statement!(
                "SELECT json_array(id, content_hash) FROM listings WHERE price_lovelace = CAST(?1 AS INTEGER) AND protected = 1",
                price
            ))
            .await?
            .all_json()?;
        let is_it =
            |(id, content): &&(String, ContentHash)| datum.input_hash == listing_input_hash(id, content).as_bytes();
        let Some((id, _)) = listed.iter().find(is_it) else { return Ok(None) };
        self.terms(id).await
    }

    async fn terms(&self, id: &str) -> Result<Option<ListingTerms>, DatabaseError> {
        let Ok(id) = id.parse::<ListingId>() else { return Ok(None) };
        self.database.run(crate::catalogue::terms(&id)).await?.first_json()
    }

    /// A transaction's bytes and its block, where the provider shows both, and its scripts succeeded.
    async fn in_block(&self, tx: &TxHash) -> Result<Option<(Vec<u8>, Inclusion)>, TickError> {
        let block = self.chain.inclusion_of(tx).await?;
        let known = |block: &Inclusion| block.height < self.tip.height || block.block == self.tip.hash;
        let Some(block) = block.filter(|block| block.valid && known(block)) else { return Ok(None) };
        Ok(self.chain.transaction(tx).await?.map(|cbor| (cbor, block)))
    }

    /// Notes that the escrow's history was read, where it was; the platform's own wallet is read from then on.
    async fn end_of_escrows(&self, before: Millis, report: &mut Report) -> Result<(), TickError> {
        let mut unread = false;
        if let Some(deployment) = self.deployment {
            let read = self.database.run(read_to()).await?.first_json::<(u64, i64)>()?.unwrap_or((0, -1));
            let from = Place { height: read.0, position: u64::try_from(read.1.saturating_add(1)).unwrap_or(0) };
            let next = self.chain.address_transactions(&deployment.address().to_string(), Some(from), 1).await?;
            unread = next.first().is_some_and(|next| next.place.height <= self.tip.height);
        }
        let mut statements = vec![statement!(
            "UPDATE restored SET escrows_read = 1 WHERE escrows_read = 0 AND ?1 = 0 AND (?2 = 1 OR NOT EXISTS (SELECT 1 FROM escrows)) \
             AND NOT EXISTS (SELECT 1 FROM unknown_escrows u WHERE refused IS NULL AND at_ms <= ?3 \
               AND NOT EXISTS (SELECT 1 FROM outbox WHERE tx_id = u.tx_id)) RETURNING 'read'",
            unread,
            self.deployment.is_some(),
            before
        )];
        if let Some(seller) = self.seller {
            statements.push(statement!(
                "INSERT INTO unread_wallets (wallet, height, position) SELECT ?1, height, 0 FROM restored \
                 WHERE only = 1 AND escrows_read = 1 ON CONFLICT DO NOTHING",
                seller.enterprise_address()
            ));
        }
        let done = self.database.batch(statements).await?;
        if done.first().is_some_and(|rows| rows.first().is_some()) {
            report.notes.push("the escrow's history since the backup is read".into());
        }
        Ok(())
    }

    /// Reads wallets' transactions since the backup, those first whose owners signed in last: payments and payouts that the
    /// database does not know are recorded.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn read_wallets(&self, report: &mut Report) -> Result<(), TickError> {
        let unread: Vec<Unread> = self.database.run(unread(self.tip.time_ms)).await?.all_json()?;
        for unread in unread {
            if (self.calls_left)() <= CALLS_KEPT {
                break;
            }
            match self.read_wallet(&unread, report).await {
                Ok(()) => {}
                Err(error @ TickError::Chain(_)) => report.note(&unread.wallet, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn read_wallet(&self, unread: &Unread, report: &mut Report) -> Result<(), TickError> {
        let Unread { wallet, height, position } = unread;
        let mut next = Place { height: *height, position: *position };
        loop {
            let listed = self.chain.address_transactions(&wallet.to_string(), Some(next), PAGE).await?;
            let ids: Vec<TxHash> = listed.iter().map(|listed| listed.tx).collect();
            let known: Vec<TxHash> = self.database.run(known(&ids)).await?.all_json()?;
            for listed in listed.iter().filter(|listed| listed.place.height <= self.tip.height) {
                if !known.contains(&listed.tx) {
                    if (self.calls_left)() <= CALLS_KEPT {
                        return Ok(());
                    }
                    let Some((cbor, block)) = self.in_block(&listed.tx).await? else { return Ok(()) };
                    let statements = self.found_in(wallet, &listed.tx, cbor, &block).await?;
                    if !statements.is_empty() {
                        self.database.batch(statements).await?;
                        report.notes.push(format!("{} of {wallet} is recorded: only the chain told of it", listed.tx));
                    }
                }
                next = Place { height: listed.place.height, position: listed.place.position.saturating_add(1) };
                self.database.run(read_up_to(wallet, next)).await?;
            }
            if listed.len() < PAGE || listed.iter().any(|listed| listed.place.height > self.tip.height) {
                self.database.run(statement!("DELETE FROM unread_wallets WHERE wallet = ?1", *wallet)).await?;
                return Ok(());
            }
        }
    }

    /// The statements that record what a transaction paid for that this wallet signed; none where it made no payment here.
    async fn found_in(
        &self,
        wallet: &Address,
        tx: &TxHash,
        cbor: Vec<u8>,
        block: &Inclusion,
    ) -> Result<Vec<Statement>, DatabaseError> {
        let subject = SignedTx::parse(&cbor).ok().and_then(|tx| subject::read(&tx, wallet));
        let Some(subject) = subject else { return Ok(vec![]) };
        if let Ok(purchase) = subject.parse::<TxHash>() {
            return self.record_payout(&purchase, wallet, *tx, cbor, block).await;
        }
        let Some(terms) = self.terms(&subject).await? else { return Ok(vec![]) };
        let Ok(utxos) = TransactionUtxos::read(&cbor) else { return Ok(vec![]) };
        let seller = terms.seller_address.to_string();
        let pays = utxos.made.iter().any(|made| made.address == seller && made.value.lovelace >= terms.price_lovelace);
        if !pays {
            return Ok(vec![]);
        }
        let payment = Payment {
            listing: terms.id.to_string(),
            mode: DeliveryMode::Instant,
            payer: *wallet,
            price: terms.price_lovelace,
            terms_digest: None,
        };
        self.record_payment(&payment, *tx, cbor, block)
    }

    /// The statements that write down a payment that is in a block, with its purchase. A client that presents it signs as
    /// its payer.
    fn record_payment(
        &self,
        payment: &Payment,
        tx: TxHash,
        cbor: Vec<u8>,
        block: &Inclusion,
    ) -> Result<Vec<Statement>, DatabaseError> {
        let Payment { listing, mode, payer, price, terms_digest } = payment;
        let kind = match mode {
            DeliveryMode::Instant => Kind::Payment,
            DeliveryMode::Protected => Kind::Lock,
        };
        let header = ContentHash::of(&cbor);
        let (draft, entry) = self.entry(tx, kind, format!("payment:{listing}:{tx}"), *payer, cbor, block);
        let [written, _] = write_down(&draft, self.now);
        let paid = statement!(
            "INSERT INTO payments (tx_id, listing_id, mode, payer, amount_lovelace, creator_lovelace, header_digest, \
               terms_digest, owner, day, payer_key) \
             SELECT tx_id, ?3, ?4, ?5, CAST(?6 AS INTEGER), CAST(?7 AS INTEGER), ?8, \
               iif(EXISTS (SELECT 1 FROM payments WHERE terms_digest = ?9 AND payer_key = ?10), NULL, ?9), \
               (SELECT owner FROM accounts WHERE wallet_address = ?5), \
               (SELECT ?11 / ?12 FROM accounts WHERE wallet_address = ?5), ?10 \
             FROM outbox WHERE tx_id = ?1 AND purpose = ?2 AND state = 'claimed' ON CONFLICT DO NOTHING",
            tx,
            draft.purpose.as_str(),
            listing.as_str(),
            mode.as_str(),
            *payer,
            *price,
            creator_part(*mode, *price),
            header,
            *terms_digest,
            payer.payment_key().to_string(),
            block.time_ms,
            DAY_MS,
        );
        self.included(vec![written, paid], &entry, block)
    }

    /// The statements that write down that a creator was paid.
    async fn record_payout(
        &self,
        purchase: &TxHash,
        wallet: &Address,
        tx: TxHash,
        cbor: Vec<u8>,
        block: &Inclusion,
    ) -> Result<Vec<Statement>, DatabaseError> {
        let sold = statement!("SELECT id FROM purchases WHERE id = ?1", *purchase);
        let ours = self.seller.is_some_and(|seller| seller.enterprise_address() == *wallet);
        if !ours || self.database.run(sold).await?.first().is_none() {
            return Ok(vec![]);
        }
        let (draft, entry) = self.entry(tx, Kind::Payout, format!("payout:{purchase}"), *wallet, cbor, block);
        let [written, _] = write_down(&draft, self.now);
        let acts = acts_on(&draft, &[*purchase]);
        self.included(vec![written, acts], &entry, block)
    }

    /// The entry of a transaction that is in a block: nothing of what it spent need be reserved.
    fn entry(
        &self,
        tx: TxHash,
        kind: Kind,
        purpose: String,
        wallet: Address,
        cbor: Vec<u8>,
        block: &Inclusion,
    ) -> (Draft, Entry) {
        let ends = TransactionUtxos::read(&cbor).ok().and_then(|utxos| utxos.ttl);
        let valid_until = ends.unwrap_or_else(|| block.slot.saturating_add(1));
        let provenance = Provenance::Foreign;
        let entry = Entry {
            tx,
            kind,
            cbor: cbor.clone(),
            state: EntryState::Claimed,
            valid_until,
            attempts: 1,
            attempted_at_ms: self.now,
            provenance,
            block: None,
        };
        // A payer's own lock was not built by an own wallet.
        let wallet = (kind != Kind::Lock).then_some(wallet);
        let (spends, collateral) = (vec![], vec![]);
        let draft = Draft { tx, kind, purpose, wallet, cbor, valid_until, provenance, spends, collateral, guard: None };
        (draft, entry)
    }

    fn included(
        &self,
        mut statements: Vec<Statement>,
        entry: &Entry,
        block: &Inclusion,
    ) -> Result<Vec<Statement>, DatabaseError> {
        let step = Decision::Include(*block);
        statements.extend(change(entry, &step, self.now));
        statements.extend(Transitions.statements(entry, &step)?);
        Ok(statements)
    }
}

/// The quote that a lock's datum was made under, and its payer; `None` where this service never gave it. A quote follows from
/// the sale, its time, its nonce, and two settings of the API, each of whose values is tried.
fn quoted(
    datum: &Datum,
    terms: &ListingTerms,
    deployment: &Deployment,
    seller: &SigningKey,
    parameters: &ProtocolParameters,
) -> Option<(Offered, Address)> {
    let issued = datum.deadlines.issued_at()?;
    let nonce: [u8; 32] = datum.seller_nonce.as_slice().try_into().ok()?;
    let buyer = datum.buyer.key_address()?;
    let return_address = match &datum.buyer_return_address {
        Some(address) => Some(address.key_address()?),
        None => None,
    };
    let names = [TransferMethod::Escrow, TransferMethod::Masumi];
    let settings = names.into_iter().flat_map(|name| CONFIRMATIONS.map(move |number| (name, number)));
    settings.into_iter().find_map(|(name, number)| {
        let policy = ConfirmationPolicy::new(number)?;
        let method = EscrowMethod::new(api_types::NETWORK, deployment.clone(), seller.clone(), name, policy).ok()?;
        let sale: Sale<'_> = terms.sale();
        let QuoteDraft::Unsigned(quote) = method.draft(&sale, issued, nonce).ok()? else { return None };
        let digest = *quote.terms_digest().0.as_bytes();
        if !datum.reference_signature.windows(digest.len()).any(|bytes| *bytes == digest) {
            return None;
        }
        let signature = quote.key().sign(quote.to_sign());
        let offered = quote.signed(signature);
        let asked = method.output(&offered, &buyer, return_address.as_ref(), parameters, &api_types::SLOTS).ok()?;
        let mut expected = Datum::from_cbor(asked.output.inline_datum.as_deref()?).ok()?;
        let enough = datum.collateral_return >= expected.collateral_return;
        expected.collateral_return = datum.collateral_return;
        (enough && expected == *datum).then_some((offered, buyer))
    })
}

/// The statement that answers where wallets or escrows are to be read or judged.
pub(super) fn is_wanted() -> Statement {
    statement!(
        "SELECT 'wanted' WHERE EXISTS (SELECT 1 FROM unread_wallets) \
         OR EXISTS (SELECT 1 FROM restored WHERE only = 1 AND escrows_read = 0) \
         OR EXISTS (SELECT 1 FROM unknown_escrows WHERE refused IS NULL)"
    )
}

/// The statement that reads unknown escrows in blocks of before this time that no entry made by now.
fn unjudged(before: Millis) -> Statement {
    statement!(
        format!(
            "SELECT json_object('utxo', utxo, 'at', at_ms, 'datum', datum, 'locked', CAST(locked_lovelace AS TEXT)) \
             FROM unknown_escrows u WHERE refused IS NULL AND at_ms <= ?1 \
               AND NOT EXISTS (SELECT 1 FROM outbox WHERE tx_id = u.tx_id) ORDER BY at_ms LIMIT {MOST}"
        ),
        before
    )
}

/// The statement that answers whether the escrow's history since a backup is to be read, and may be by now.
fn restoring(time: Millis) -> Statement {
    statement!(
        "SELECT 'restoring' FROM restored WHERE only = 1 AND escrows_read = 0 AND at_ms + ?2 <= ?1",
        time,
        SETTLED_AFTER_MS
    )
}

fn refuse(utxo: &TxRef, why: &str) -> Statement {
    statement!("UPDATE unknown_escrows SET refused = ?2 WHERE utxo = ?1", utxo, why)
}

/// The statement that reads the place up to which the escrow's history was read.
fn read_to() -> Statement {
    statement!("SELECT json_array(height, position) FROM chain_reading")
}

/// The statement that reads which wallets are to be read, where it is time.
fn unread(time: Millis) -> Statement {
    statement!(
        format!(
            "SELECT json_object('wallet', w.wallet, 'height', w.height, 'position', w.position) \
             FROM restored r CROSS JOIN unread_wallets w WHERE r.only = 1 AND r.at_ms + ?2 <= ?1 \
             ORDER BY (SELECT max(s.expires_at_ms) FROM accounts a JOIN sessions s ON s.owner = a.owner \
               WHERE a.wallet_address = w.wallet) DESC LIMIT {MOST}"
        ),
        time,
        SETTLED_AFTER_MS
    )
}

/// The statement that reads which of these transactions have an entry.
fn known(ids: &[TxHash]) -> Statement {
    statement!(
        "SELECT json_quote(tx_id) FROM outbox WHERE tx_id IN (SELECT value FROM json_each(?1))",
        json!(ids).to_string()
    )
}

fn read_up_to(wallet: &Address, next: Place) -> Statement {
    statement!(
        "UPDATE unread_wallets SET height = ?2, position = ?3 WHERE wallet = ?1",
        *wallet,
        next.height,
        next.position
    )
}
