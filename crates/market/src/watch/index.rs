//! New transactions of the escrow address, as steps of the escrows that they change.

use sql::{Database, DatabaseError, Statement, statement};
use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Inclusion, Tip},
    history::{AddressTransaction, History},
    tx::TransactionEffects,
};
use escrow::Deployment;
use serde::Deserialize;

use super::{
    CALLS_KEPT, CALLS_TO_ACT, Report, TickError, Watch,
    payments::Payments,
    reading::{self, Open, Reading},
    watched::{self, Watched, WatchedRow},
};
use crate::{listing::DeliveryMode, settlement};

/// Transactions that are read at once.
const PAGE: usize = 50;

/// A transaction of ours among those that were read.
#[derive(Deserialize)]
pub(super) struct Ours {
    pub tx: TxHash,
    cbor: String,
    mode: Option<DeliveryMode>,
    state: String,
    pub price: Option<Lovelace>,
    pub creator: Option<String>,
}

/// A transaction, what it did, and whether it is ours.
struct News {
    touch: AddressTransaction,
    effects: TransactionEffects,
    ours: Option<Ours>,
    inclusion: Option<Inclusion>,
}

impl<D: Database, C: Chain + History> Watch<'_, D, C> {
    /// Reads page after page, each written in one batch; whether nothing is left to read up to the newest block.
    pub(super) async fn read_new(
        &self,
        deployment: &Deployment,
        tip: &Tip,
        reading: &mut Reading,
        report: &mut Report,
    ) -> Result<bool, TickError> {
        let address = deployment.address().to_string();
        loop {
            let mut page = self.chain.address_transactions(&address, reading.next, PAGE).await?;
            // What came in since the newest block was asked for is above every block that is known: nobody would notice
            // if it went away again.
            page.retain(|touch| touch.place.height <= tip.height);
            let news = self.gather(&page).await?;
            let read = self.write(deployment, &news, tip, reading, report).await?;
            report.read = report.read.saturating_add(read);
            if read < page.len() {
                return Ok(false);
            }
            if page.len() < PAGE {
                return Ok(true);
            }
            if (self.calls_left)() <= CALLS_KEPT {
                return Ok(false);
            }
        }
    }

    /// What the transactions did: ours are known, others are asked for, as many as the calls allow.
    async fn gather(&self, page: &[AddressTransaction]) -> Result<Vec<News>, TickError> {
        if page.is_empty() {
            return Ok(vec![]);
        }
        let ids: Vec<String> = page.iter().map(|touch| touch.tx.to_string()).collect();
        let ours = statement!(
            "SELECT json_object('tx', s.tx_id, 'cbor', s.cbor, 'mode', s.mode, 'state', s.state, \
               'price', CAST(s.amount_lovelace AS TEXT), 'creator', l.seller_address) \
             FROM settlements s LEFT JOIN listings l ON l.id = s.listing_id \
             WHERE s.tx_id IN (SELECT value FROM json_each(?1))",
            serde_json::json!(ids).to_string()
        );
        let ours: Vec<Ours> = self.database.run(ours).await?.all_json()?;
        let mut ours: BTreeMap<TxHash, Ours> = ours.into_iter().map(|ours| (ours.tx, ours)).collect();
        let mut news = Vec::new();
        for touch in page {
            let ours = ours.remove(&touch.tx);
            match self.look(touch, ours).await {
                Ok(Some(one)) => news.push(one),
                // The provider lists what it does not know yet: the next tick asks again.
                Ok(None) | Err(TickError::Chain(ChainError::BudgetExhausted)) => break,
                Err(error) if news.is_empty() => return Err(error),
                Err(_) => break,
            }
            if (self.calls_left)() <= CALLS_KEPT {
                break;
            }
        }
        Ok(news)
    }

    async fn look(&self, touch: &AddressTransaction, ours: Option<Ours>) -> Result<Option<News>, TickError> {
        let Some(ours) = ours else {
            let Some(cbor) = self.chain.transaction(&touch.tx).await? else { return Ok(None) };
            let effects = TransactionEffects::read(&cbor).map_err(|error| ChainError::Malformed(error.to_string()))?;
            return Ok(Some(News { touch: *touch, effects, ours: None, inclusion: None }));
        };
        let broken = || DatabaseError(format!("the transaction {} cannot be read", ours.tx));
        let cbor = hex::decode(&ours.cbor).map_err(|_| broken())?;
        let effects = TransactionEffects::read(&cbor).map_err(|_| broken())?;
        let inclusion = match ours.state.as_str() {
            "included" => None,
            _ => match self.chain.inclusion_of(&touch.tx).await? {
                Some(inclusion) => Some(inclusion),
                None => return Ok(None),
            },
        };
        Ok(Some(News { touch: *touch, effects, ours: Some(ours), inclusion }))
    }

    /// Writes what these transactions changed, up to the first of which that is not known; how many.
    async fn write(
        &self,
        deployment: &Deployment,
        news: &[News],
        tip: &Tip,
        reading: &mut Reading,
        report: &mut Report,
    ) -> Result<usize, TickError> {
        if news.is_empty() {
            return Ok(0);
        }
        let mut watched = self.watched(news).await?;
        let mut statements = Vec::new();
        let mut last = None;
        let mut read = 0_usize;
        for one in news {
            let Some(changes) = self.changes(one, deployment, &mut watched, report).await? else { break };
            statements.extend(changes);
            last = Some(one.touch.place);
            read = read.saturating_add(1);
        }
        let Some(last) = last else { return Ok(0) };
        statements.push(reading.advance(last));
        // The block goes with what was read up to it: if this tick is killed now, the next must notice when it is gone.
        statements.push(reading::note_block(tip));
        statements.push(reading.note_behind(true));
        self.database.batch(statements).await?;
        let confirmed =
            |open: &Open| news.iter().take(read).any(|news| news.inclusion.is_some() && news.touch.tx == open.tx);
        reading.open.retain(|open| !confirmed(open));
        Ok(read)
    }

    /// What a transaction changed; `None` where that cannot be said now.
    async fn changes(
        &self,
        News { touch, effects, ours, inclusion }: &News,
        deployment: &Deployment,
        watched: &mut BTreeMap<TxRef, Watched>,
        report: &mut Report,
    ) -> Result<Option<Vec<Statement>>, TickError> {
        let mut statements = Vec::new();
        if inclusion.as_ref().is_some_and(|inclusion| !inclusion.valid) {
            return Ok(Some(statements));
        }
        if let Some(ours) = ours {
            let lock = (ours.mode == Some(DeliveryMode::Protected)).then_some(ours.cbor.as_str());
            if let Some(inclusion) = inclusion {
                statements.extend(settlement::included(&touch.tx, inclusion, lock)?);
                report.confirmed = report.confirmed.saturating_add(1);
            }
            let new = lock.and_then(|_| watched::locked(ours, effects, deployment));
            if let Some(new) = new {
                watched.entry(new.escrow.utxo.reference).or_insert(new);
            }
        }
        let spent: Vec<Watched> = effects.spent.iter().filter_map(|input| watched.remove(input)).collect();
        if !spent.is_empty() && ours.is_none() {
            match self.succeeded(&touch.tx, report).await {
                Some(true) => {}
                Some(false) => {
                    watched.extend(spent.into_iter().map(|watched| (watched.escrow.utxo.reference, watched)));
                    return Ok(Some(statements));
                }
                None => return Ok(None),
            }
        }
        let mut payments = Payments::of(&effects.made);
        for old in spent {
            report.steps = report.steps.saturating_add(1);
            statements.push(settlement::overtaken(&touch.tx, &old.escrow.utxo.reference));
            let (step, next) = old.after(touch, &effects.made, &mut payments, deployment);
            statements.extend(step);
            watched.extend(next.map(|next| (next.escrow.utxo.reference, next)));
        }
        Ok(Some(statements))
    }

    /// Whether a transaction's scripts succeeded; `None` where the provider does not say, or too few calls are left.
    async fn succeeded(&self, tx: &TxHash, report: &mut Report) -> Option<bool> {
        if (self.calls_left)() <= CALLS_TO_ACT {
            return None;
        }
        match self.chain.inclusion_of(tx).await {
            Ok(inclusion) => inclusion.map(|inclusion| inclusion.valid),
            Err(error) => {
                report.notes.push(format!("the provider does not say whether {tx} succeeded: {error}"));
                None
            }
        }
    }

    /// The watched escrows that these transactions spend.
    async fn watched(&self, news: &[News]) -> Result<BTreeMap<TxRef, Watched>, TickError> {
        let inputs: BTreeSet<String> =
            news.iter().flat_map(|news| &news.effects.spent).map(ToString::to_string).collect();
        let read = statement!(
            "SELECT json_object('purchase', e.purchase_id, 'utxo', e.utxo, 'address', e.address, 'datum', e.datum, \
               'locked', CAST(e.locked_lovelace AS TEXT), 'creator', p.seller_address, \
               'price', CAST(p.price_lovelace AS TEXT)) \
             FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
             WHERE e.utxo IN (SELECT value FROM json_each(?1))",
            serde_json::json!(inputs).to_string()
        );
        let rows: Vec<WatchedRow> = self.database.run(read).await?.all_json()?;
        let watched = rows.into_iter().map(|row| Ok((row.utxo, row.watched()?)));
        watched.collect::<Result<_, DatabaseError>>().map_err(TickError::from)
    }
}
