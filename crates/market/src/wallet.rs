//! A service wallet's money: what it holds, what is promised, and the claim of a spend within the limits.
//!
//! ```text
//! on the chain  +  change of what we sent lately  -  inputs of what we sent  =  what may be spent
//! ```
//!
//! Nobody but us spends from a service wallet, and every spend is written down with its inputs first, so this sum holds
//! however late the provider's view is. Change is spendable once a node has taken the transaction that makes it.

use sql::{Database, DatabaseError, Rows, Statement, exactly, statement};
use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Inclusion, Utxo},
    slots::Millis,
    tx::{AddressKind, OutputDatum, SignedTx},
};
use serde::Deserialize;
use x402_cardano::settlement::{Claim, Claimed, Record, SettlementStore, State};

use crate::{
    account::{Account, day},
    settlement::{EXPIRY_GRACE_SLOTS, RECORD_JSON, Settlements, by_id, insert_claim, record},
};

/// How far back a provider's view may be, in ms: transactions of ours that are older are in every view.
const MAX_LAG_MS: u64 = 60 * 60 * 1_000;

/// Transactions that are sent again for one that depends on them.
const MAX_SENT_AGAIN: usize = 8;

/// What the database knows of a wallet's money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Outputs that transactions of ours spend or put up.
    pub reserved: BTreeSet<TxRef>,
    /// Change of lately sent transactions, whether or not the provider shows it yet.
    pub change: Vec<Utxo>,
    /// Transactions that a node took and no block is known to have, oldest first, with their CBOR.
    pub waiting: Vec<(TxHash, Vec<u8>)>,
    /// Whether a transaction was written down that no node has confirmed to have: its change will be spendable soon.
    pub in_flight: bool,
}

#[derive(Deserialize)]
struct Sent {
    cbor: String,
    state: String,
}

/// The statements that read [`Promises`].
#[must_use]
pub fn promises(wallet: &Address, now: Millis) -> [Statement; 2] {
    let (wallet, since) = (wallet.to_string(), now.saturating_sub(MAX_LAG_MS));
    [
        statement!(
            "SELECT json_object('cbor', cbor, 'state', state) FROM settlements WHERE wallet = ?1 AND created_at_ms > ?2 \
             AND state IN ('claimed', 'submitted', 'included') ORDER BY created_at_ms",
            wallet.as_str(),
            since
        ),
        statement!(
            "SELECT r.tx_in FROM settlements s JOIN reservations r ON r.tx_id = s.tx_id \
             WHERE s.wallet = ?1 AND s.created_at_ms > ?2",
            wallet.as_str(),
            since
        ),
    ]
}

impl Promises {
    /// Reads the answers to [`promises`].
    ///
    /// # Errors
    /// What is stored is not what we store.
    pub fn read(wallet: &Address, sent: &Rows, reserved: &Rows) -> Result<Self, DatabaseError> {
        let broken = |what: &str| DatabaseError(format!("{what} of a wallet's transaction cannot be read"));
        let mut read = Self::default();
        for tx_in in &reserved.rows {
            read.reserved.insert(tx_in.parse().map_err(|_| broken("an input"))?);
        }
        for sent in sent.all_json::<Sent>()? {
            if sent.state == "claimed" {
                read.in_flight = true;
                continue;
            }
            let cbor = hex::decode(&sent.cbor).map_err(|_| broken("the hex"))?;
            let tx = SignedTx::parse(&cbor).map_err(|_| broken("the CBOR"))?;
            // One that was refused and is in a block all the same has no reservations any more.
            read.reserved.extend(&tx.inputs);
            read.change.extend(outputs_to(wallet, &tx));
            if sent.state == "submitted" {
                read.waiting.push((tx.id, cbor));
            }
        }
        Ok(read)
    }

    /// What may be spent, of what the provider shows.
    #[must_use]
    pub fn spendable(&self, shown: &[Utxo]) -> Vec<Utxo> {
        let all: BTreeMap<TxRef, &Utxo> = shown.iter().chain(&self.change).map(|utxo| (utxo.reference, utxo)).collect();
        all.into_values().filter(|utxo| !self.reserved.contains(&utxo.reference)).cloned().collect()
    }
}

/// Sends what nodes took and may have lost again, where one of these inputs depends on it: a node refuses what spends
/// outputs that it does not know. Whether there was anything to send.
pub async fn send_again(chain: &impl Chain, promises: &Promises, inputs: &[TxRef]) -> bool {
    let depends = promises.waiting.iter().any(|(tx, _)| inputs.iter().any(|input| input.tx == *tx));
    if depends {
        for (_, cbor) in promises.waiting.iter().take(MAX_SENT_AGAIN) {
            // What it says does not matter: one that is not lost is refused, because its inputs are spent.
            drop(chain.submit(cbor).await);
        }
    }
    depends
}

/// The outputs of a transaction that belong to a wallet.
fn outputs_to(wallet: &Address, tx: &SignedTx) -> Vec<Utxo> {
    let own = |(index, output): (u16, &cardano::tx::Output)| {
        let datum_hash = output.datum.as_ref().map(|datum| match datum {
            OutputDatum::Hash(hash) => *hash,
            OutputDatum::Inline(cbor) => cardano::hash::blake2b(cbor),
        });
        let plain = output.reference_script.is_none();
        (output.owner == AddressKind::Key(*wallet) && plain).then(|| Utxo {
            reference: TxRef { tx: tx.id, index },
            address: wallet.to_string(),
            value: output.value.clone(),
            inline_datum: match &output.datum {
                Some(OutputDatum::Inline(cbor)) => Some(cbor.clone()),
                _ => None,
            },
            datum_hash,
            reference_script: None,
        })
    };
    (0_u16..).zip(&tx.outputs).filter_map(own).collect()
}

/// A purchase that a service wallet is to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spend<'a> {
    /// Whose wallet and limits.
    pub account: &'a Account,
    /// What the transaction spends and puts up.
    pub inputs: Vec<TxRef>,
    /// POSIX ms, for the day.
    pub now: Millis,
}

/// Why a spend was not granted. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGranted {
    /// Over the limit per purchase.
    #[error("over the limit of {} per purchase: raise it (PUT /me/agent-limits)", limit.display_tada())]
    PerPayment {
        /// The limit.
        limit: Lovelace,
    },
    /// Over the daily limit.
    #[error(
        "over the daily limit: {} of {} are spent today (UTC); raise it (PUT /me/agent-limits) or try again tomorrow",
        spent.display_tada(), limit.display_tada()
    )]
    Daily {
        /// The limit.
        limit: Lovelace,
        /// Spent today.
        spent: Lovelace,
    },
    /// The same purchase is being made, or was made.
    #[error("this purchase is being made already: try again in a few seconds")]
    SamePurchase,
    /// Another transaction took an input first: build anew.
    #[error("the wallet is busy with other payments: try again in a few seconds")]
    InputsTaken,
}

/// Why a spend could not be claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpendError {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The limits, or somebody else, are in the way.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
}

/// The settlements of a service wallet: a claim is written together with its spend and its inputs, or not at all.
#[derive(Clone, Debug)]
pub struct WalletSettlements<'a, D> {
    inner: Settlements<'a, D>,
    spend: Spend<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    max_per_payment: Lovelace,
    daily_budget: Lovelace,
    spent: Lovelace,
    same: bool,
}

impl<'a, D: Database> WalletSettlements<'a, D> {
    /// The store for one spend.
    pub const fn new(database: &'a D, spend: Spend<'a>) -> Self {
        Self { inner: Settlements(database), spend }
    }

    fn inputs(&self) -> String {
        let inputs: Vec<String> = self.spend.inputs.iter().map(ToString::to_string).collect();
        serde_json::json!(inputs).to_string()
    }

    /// The spend, if limits, inputs and terms allow it: one statement, so that no two can both be the last that fits. One
    /// that was given back, because the ledger refused the same transaction before, begins again.
    fn grant(&self, claim: &Claim) -> Statement {
        statement!(
            "INSERT INTO spends (tx_id, owner, listing_id, amount_lovelace, day, state) \
             SELECT ?1, a.owner, ?3, CAST(?4 AS INTEGER), ?5, 'open' FROM accounts a WHERE a.owner = ?2 \
               AND a.max_per_payment >= CAST(?4 AS INTEGER) \
               AND a.daily_budget >= CAST(?4 AS INTEGER) + coalesce((SELECT sum(amount_lovelace) FROM spends \
                 WHERE owner = ?2 AND day = ?5 AND state <> 'returned'), 0) \
               AND NOT EXISTS (SELECT 1 FROM reservations WHERE tx_in IN (SELECT value FROM json_each(?6))) \
               AND NOT EXISTS (SELECT 1 FROM purchases WHERE listing_id = ?3 AND status <> 'refunded' \
                 AND buyer_address IN (a.owner, a.wallet_address)) \
               AND NOT EXISTS (SELECT 1 FROM spends WHERE owner = ?2 AND listing_id = ?3 AND state = 'open') \
               AND NOT EXISTS (SELECT 1 FROM settlements WHERE terms_digest = ?7 AND tx_id <> ?1) \
             ON CONFLICT (tx_id) DO UPDATE SET state = 'open', day = excluded.day WHERE spends.state = 'returned'",
            claim.payment.tx_id.to_string(),
            self.spend.account.owner.as_str(),
            claim.resource.as_str(),
            claim.payment.amount.to_string(),
            day(self.spend.now),
            self.inputs(),
            claim.terms_digest.map(|digest| digest.to_string()),
        )
    }

    fn reserve(&self, tx: &TxHash) -> Statement {
        statement!(
            "INSERT INTO reservations (tx_in, tx_id) SELECT j.value, s.tx_id FROM settlements s, json_each(?2) j \
             WHERE s.tx_id = ?1 AND s.wallet = ?3 AND s.state = 'claimed' ON CONFLICT DO NOTHING",
            tx.to_string(),
            self.inputs(),
            self.spend.account.wallet_address.to_string(),
        )
    }

    fn standing(&self, claim: &Claim) -> Statement {
        statement!(
            "SELECT json_object('maxPerPayment', CAST(a.max_per_payment AS TEXT), \
               'dailyBudget', CAST(a.daily_budget AS TEXT), \
               'spent', CAST(coalesce((SELECT sum(amount_lovelace) FROM spends \
                 WHERE owner = ?1 AND day = ?2 AND state <> 'returned'), 0) AS TEXT), \
               'same', json(iif(EXISTS (SELECT 1 FROM spends WHERE owner = ?1 AND listing_id = ?3 AND state = 'open') \
                 OR EXISTS (SELECT 1 FROM purchases WHERE listing_id = ?3 AND status <> 'refunded' \
                   AND buyer_address IN (a.owner, a.wallet_address)), 'true', 'false'))) \
             FROM accounts a WHERE a.owner = ?1",
            self.spend.account.owner.as_str(),
            day(self.spend.now),
            claim.resource.as_str(),
        )
    }
}

fn why(standing: &Standing, amount: Lovelace) -> NotGranted {
    if standing.same {
        return NotGranted::SamePurchase;
    }
    if amount > standing.max_per_payment {
        return NotGranted::PerPayment { limit: standing.max_per_payment };
    }
    match standing.spent.checked_add(amount) {
        Some(total) if total <= standing.daily_budget => NotGranted::InputsTaken,
        _ => NotGranted::Daily { limit: standing.daily_budget, spent: standing.spent },
    }
}

impl<D: Database> SettlementStore for WalletSettlements<'_, D> {
    type Error = SpendError;

    async fn find(&self, tx: &TxHash) -> Result<Option<Record>, SpendError> {
        Ok(self.inner.find(tx).await?)
    }

    async fn claim(&self, claim: &Claim, now: Millis) -> Result<Claimed, SpendError> {
        let tx = claim.payment.tx_id;
        let wallet = self.spend.account.wallet_address.to_string();
        let statements = vec![
            self.grant(claim),
            insert_claim(claim, now, Some(&wallet)),
            self.reserve(&tx),
            by_id(&tx),
            self.standing(claim),
        ];
        let [_, new, _, known, standing] = exactly(self.inner.0.batch(statements).await?)?;
        if let Some(record) = record(&new)? {
            return Ok(Claimed::New(record));
        }
        // One that the ledger refused holds nothing: it would have been claimed anew, had its spend been granted.
        if let Some(record) = record(&known)?.filter(|record| record.state != State::Refused) {
            return Ok(Claimed::Known(record));
        }
        let standing: Standing = standing.first_json()?.ok_or_else(|| DatabaseError("no such account".into()))?;
        let amount = Lovelace::new(claim.payment.amount.get()).unwrap_or(Lovelace::MAX);
        Err(why(&standing, amount).into())
    }

    async fn begin_attempt(&self, tx: &TxHash, attempts: u32, now: Millis) -> Result<bool, SpendError> {
        Ok(self.inner.begin_attempt(tx, attempts, now).await?)
    }

    async fn mark_submitted(&self, tx: &TxHash) -> Result<(), SpendError> {
        Ok(self.inner.mark_submitted(tx).await?)
    }

    async fn mark_included(&self, tx: &TxHash, inclusion: &Inclusion) -> Result<(), SpendError> {
        Ok(self.inner.mark_included(tx, inclusion).await?)
    }

    async fn mark_refused(&self, tx: &TxHash, attempts: u32, reason: &str) -> Result<bool, SpendError> {
        Ok(self.inner.mark_refused(tx, attempts, reason).await?)
    }

    async fn mark_expired(&self, tx: &TxHash) -> Result<(), SpendError> {
        Ok(self.inner.mark_expired(tx).await?)
    }
}

/// The statement that reads the payments of this account for a listing whose end is not known, as records.
#[must_use]
pub fn open_purchase(account: &Account, listing: &str) -> Statement {
    statement!(
        format!(
            "SELECT {RECORD_JSON} FROM settlements WHERE wallet = ?1 AND listing_id = ?2 \
             AND state IN ('claimed', 'submitted') ORDER BY created_at_ms LIMIT 1"
        ),
        account.wallet_address.to_string(),
        listing
    )
}

/// The statement that reads the CBOR of the first payment of this account for a listing that the ledger refused and that
/// could still be in a block of this slot: a provider may have passed it on before it refused.
#[must_use]
pub fn refused_purchase(account: &Account, listing: &str, slot: u64) -> Statement {
    statement!(
        "SELECT cbor FROM settlements WHERE wallet = ?1 AND listing_id = ?2 AND state = 'refused' \
         AND valid_until_slot > ?3 ORDER BY created_at_ms LIMIT 1",
        account.wallet_address.to_string(),
        listing,
        slot.saturating_sub(EXPIRY_GRACE_SLOTS)
    )
}

/// Looks for this wallet's latest payments that the ledger refused, in case a provider had passed them on all the same.
/// Whether one is in a block.
///
/// # Errors
/// The database or the chain cannot be asked.
pub async fn find_refused<E: From<DatabaseError> + From<ChainError>>(
    database: &impl Database,
    chain: &impl Chain,
    wallet: &Address,
    slot: u64,
) -> Result<bool, E> {
    let refused = statement!(
        "SELECT tx_id FROM settlements WHERE wallet = ?1 AND state = 'refused' AND valid_until_slot > ?2 \
         ORDER BY created_at_ms DESC LIMIT 3",
        wallet.to_string(),
        slot.saturating_sub(EXPIRY_GRACE_SLOTS)
    );
    let mut found = false;
    for tx in database.run(refused).await?.rows {
        let tx: TxHash = tx.parse().map_err(|_| DatabaseError("a transaction id cannot be read".into()))?;
        if let Some(inclusion) = chain.inclusion_of(&tx).await?.filter(|inclusion| inclusion.valid) {
            Settlements(database).mark_included(&tx, &inclusion).await?;
            found = true;
        }
    }
    Ok(found)
}

/// Closes this wallet's transactions whose time is over and whose end is not known: they are in a block after all, or
/// never will be, and what they held is given back.
///
/// # Errors
/// The database or the chain cannot be asked.
pub async fn close_overdue<E: From<DatabaseError> + From<ChainError>>(
    database: &impl Database,
    chain: &impl Chain,
    wallet: &Address,
    slot: u64,
) -> Result<(), E> {
    let overdue = statement!(
        "SELECT tx_id FROM settlements WHERE wallet = ?1 AND state IN ('claimed', 'submitted') \
         AND valid_until_slot < ?2 ORDER BY valid_until_slot LIMIT 3",
        wallet.to_string(),
        slot.saturating_sub(EXPIRY_GRACE_SLOTS)
    );
    let store = Settlements(database);
    for tx in database.run(overdue).await?.rows {
        let tx: TxHash = tx.parse().map_err(|_| DatabaseError("a transaction id cannot be read".into()))?;
        match chain.inclusion_of(&tx).await? {
            Some(inclusion) => store.mark_included(&tx, &inclusion).await?,
            None => store.mark_expired(&tx).await?,
        }
    }
    Ok(())
}
