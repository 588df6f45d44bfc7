//! New transactions of the escrow address, as steps of the escrows that they change.

use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Inclusion, Utxo, Value},
    history::{Effects, History, Place, Touch},
    tx::{OutputDatum, SignedTx},
};
use escrow::{
    Datum, Deployment, PlutusAddress,
    payout::creator_payout,
    plan::Escrow,
    spend::{Ending, Spent},
};
use serde::Deserialize;

use super::{CALLS_KEPT, Report, TickError, Watch, payments::Payments, reading::Reading};
use crate::{
    database::{Database, DatabaseError, Statement, outcomes},
    listing::DeliveryMode,
    purchase, settlement, statement,
};

/// Transactions that are read at once.
const PAGE: usize = 50;

/// A transaction of ours among those that were read.
#[derive(Deserialize)]
struct Ours {
    tx: TxHash,
    cbor: String,
    mode: Option<DeliveryMode>,
    state: String,
    price: Option<Lovelace>,
    creator: Option<String>,
}

/// An escrow that is watched.
#[derive(Clone, Debug)]
struct Watched {
    purchase: TxHash,
    escrow: Escrow,
    creator: String,
    payout: Lovelace,
}

#[derive(Deserialize)]
struct WatchedRow {
    purchase: TxHash,
    utxo: TxRef,
    address: String,
    datum: String,
    locked: Lovelace,
    creator: String,
    price: Lovelace,
}

/// A transaction, what it did, and whether it is ours.
struct News {
    touch: Touch,
    effects: Effects,
    ours: Option<Ours>,
    inclusion: Option<Inclusion>,
}

impl<D: Database, C: Chain + History> Watch<'_, D, C> {
    /// Reads page after page, each written in one batch.
    pub(super) async fn read_new(
        &self,
        deployment: &Deployment,
        reading: &mut Reading,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let address = deployment.address().to_string();
        loop {
            let page = self.chain.touches(&address, reading.next, PAGE).await?;
            let news = self.gather(&page).await?;
            let Some(last) = news.last().map(|news| news.touch.place) else { return Ok(()) };
            let whole = news.len() == page.len();
            report.read = report.read.saturating_add(news.len());
            self.write(deployment, news, last, reading, report).await?;
            if !whole || page.len() < PAGE || (self.calls_left)() <= CALLS_KEPT {
                return Ok(());
            }
        }
    }

    /// What the transactions did: ours are known, others are asked for, as many as the calls allow.
    async fn gather(&self, page: &[Touch]) -> Result<Vec<News>, TickError> {
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

    async fn look(&self, touch: &Touch, ours: Option<Ours>) -> Result<Option<News>, TickError> {
        let Some(ours) = ours else {
            let effects = self.chain.effects_of(&touch.tx).await?;
            return Ok(effects.map(|effects| News { touch: *touch, effects, ours: None, inclusion: None }));
        };
        let broken = || DatabaseError(format!("the transaction {} cannot be read", ours.tx));
        let cbor = hex::decode(&ours.cbor).map_err(|_| broken())?;
        let tx = SignedTx::parse(&cbor).map_err(|_| broken())?;
        let effects = effects(&tx);
        let inclusion = match ours.state.as_str() {
            "included" => None,
            _ => match self.chain.inclusion_of(&touch.tx).await? {
                Some(inclusion) => Some(inclusion),
                None => return Ok(None),
            },
        };
        Ok(Some(News { touch: *touch, effects, ours: Some(ours), inclusion }))
    }

    async fn write(
        &self,
        deployment: &Deployment,
        news: Vec<News>,
        last: Place,
        reading: &mut Reading,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut watched = self.watched(&news).await?;
        let mut statements = vec![reading.advance(last)];
        for News { touch, effects, ours, inclusion } in &news {
            if inclusion.as_ref().is_some_and(|inclusion| !inclusion.valid) {
                continue;
            }
            if let Some(ours) = ours {
                let lock = (ours.mode == Some(DeliveryMode::Protected)).then_some(ours.cbor.as_str());
                if let Some(inclusion) = inclusion {
                    statements.extend(settlement::included(&touch.tx, inclusion, lock)?);
                    report.confirmed = report.confirmed.saturating_add(1);
                }
                if let Some(new) = lock.and_then(|_| locked(ours, effects, deployment)) {
                    watched.entry(new.escrow.utxo.reference).or_insert(new);
                }
            }
            let spent: Vec<Watched> = effects.spent.iter().filter_map(|input| watched.remove(input)).collect();
            if !spent.is_empty() && ours.is_none() && !self.succeeded(&touch.tx).await? {
                watched.extend(spent.into_iter().map(|watched| (watched.escrow.utxo.reference, watched)));
                continue;
            }
            let mut payments = Payments::of(&effects.made);
            for old in spent {
                report.steps = report.steps.saturating_add(1);
                let (step, next) = old.after(touch, &effects.made, &mut payments, deployment);
                statements.extend(step);
                watched.extend(next.map(|next| (next.escrow.utxo.reference, next)));
            }
        }
        self.database.batch(statements).await?;
        reading.open.retain(|open| !news.iter().any(|news| news.inclusion.is_some() && news.touch.tx == open.tx));
        Ok(())
    }

    async fn succeeded(&self, tx: &TxHash) -> Result<bool, TickError> {
        Ok(self.chain.inclusion_of(tx).await?.is_some_and(|inclusion| inclusion.valid))
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
        let [rows] = outcomes(self.database.batch(vec![read]).await?)?;
        let rows: Vec<WatchedRow> = rows.all_json()?;
        let watched = rows.into_iter().map(|row| Ok((row.utxo, row.watched()?)));
        watched.collect::<Result<_, DatabaseError>>().map_err(TickError::from)
    }
}

impl WatchedRow {
    fn watched(self) -> Result<Watched, DatabaseError> {
        let broken = || DatabaseError(format!("the escrow of {} cannot be read", self.purchase));
        let cbor = hex::decode(&self.datum).map_err(|_| broken())?;
        let datum = Datum::from_cbor(&cbor).map_err(|_| broken())?;
        let utxo = Utxo {
            reference: self.utxo,
            address: self.address,
            value: Value { lovelace: self.locked, ..Value::default() },
            inline_datum: Some(cbor),
            datum_hash: None,
            reference_script: None,
        };
        let payout = creator_payout(self.price);
        Ok(Watched { purchase: self.purchase, escrow: Escrow { utxo, datum }, creator: self.creator, payout })
    }
}

/// The escrow that a lock of a buyer makes.
fn locked(ours: &Ours, effects: &Effects, deployment: &Deployment) -> Option<Watched> {
    let escrow = effects.made.iter().find_map(|output| Escrow::read(output.clone(), deployment).ok())?;
    Some(Watched { purchase: ours.tx, escrow, creator: ours.creator.clone()?, payout: creator_payout(ours.price?) })
}

impl Watched {
    /// What a transaction that spent it made of it: the statements, and the escrow where it goes on.
    fn after(
        self,
        touch: &Touch,
        made: &[Utxo],
        payments: &mut Payments<'_>,
        deployment: &Deployment,
    ) -> (Vec<Statement>, Option<Self>) {
        match self.escrow.spent_into(made, deployment) {
            Spent::Continues(next) => {
                let status = next.datum.state.name();
                let next = Self { escrow: *next, ..self };
                (vec![next.step(touch, Some(next.escrow.utxo.reference), status, false)], Some(next))
            }
            Spent::Ended(ending) => {
                let won = ending == Ending::Withdrawn && self.payout > Lovelace::ZERO;
                let creator = won && payments.take(&self.creator, self.payout);
                let mut statements = vec![self.step(touch, None, ending.status(), won && !creator)];
                if won && creator {
                    let (purchase, tx) = (self.purchase.to_string(), touch.tx.to_string());
                    statements.push(purchase::event(
                        &purchase,
                        &tx,
                        "creator_paid",
                        touch.time_ms,
                        touch.place.position,
                    ));
                }
                (statements, None)
            }
        }
    }

    fn step(&self, touch: &Touch, utxo: Option<TxRef>, status: &'static str, creator_due: bool) -> Statement {
        let purchase = self.purchase.to_string();
        let shown = purchase::escrow_json(&purchase, &self.escrow.utxo.address, &self.escrow.datum);
        statement!(
            "INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, utxo, datum, locked_lovelace, status, \
               shown, creator_due) \
             SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, CAST(?8 AS INTEGER), ?9, ?10, ?11 FROM purchases WHERE id = ?1 \
             ON CONFLICT DO NOTHING",
            purchase.as_str(),
            touch.tx.to_string(),
            touch.place.height,
            touch.place.position,
            touch.time_ms,
            utxo.map(|utxo| utxo.to_string()),
            hex::encode(self.escrow.datum.to_cbor()),
            self.escrow.utxo.value.lovelace,
            status,
            shown,
            creator_due,
        )
    }
}

/// What a transaction of ours spends and makes.
fn effects(tx: &SignedTx) -> Effects {
    let made = (0_u16..).zip(&tx.outputs).filter_map(|(index, output)| {
        let address = PlutusAddress::from_bytes(&output.address)?.to_string();
        let inline_datum = match &output.datum {
            Some(OutputDatum::Inline(cbor)) => Some(cbor.clone()),
            _ => None,
        };
        Some(Utxo {
            reference: TxRef { tx: tx.id, index },
            address,
            value: output.value.clone(),
            inline_datum,
            datum_hash: None,
            reference_script: None,
        })
    });
    Effects { spent: tx.inputs.clone(), made: made.collect() }
}
