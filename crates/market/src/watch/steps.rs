//! What transactions did to escrows of ours, as steps.

use std::collections::BTreeMap;

use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Chain, Utxo, Value},
    evaluation::Evaluate,
    history::History,
    slots::Millis,
    tx::TransactionUtxos,
};
use escrow::{
    Datum, State,
    plan::Escrow,
    spend::{Ending, Spent},
};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, Statement, statement};

use super::{Report, TickError, TickView, Watch, payments::Payments};
use crate::{
    contents::Contents,
    purchase::{Status, escrows_follow_steps, newest},
};

/// A transaction in a block, whose scripts succeeded.
pub(super) struct Found {
    pub utxos: TransactionUtxos,
    pub height: u64,
    /// Its block's time, POSIX ms.
    pub time_ms: Millis,
}

/// An escrow that is open.
#[derive(Clone, Debug)]
struct Watched {
    purchase: TxHash,
    escrow: Escrow,
    /// Who is to be paid how much when it is collected.
    creator: String,
    share: Lovelace,
    /// The entry of ours that spends it.
    spender: Option<TxHash>,
}

/// As it is stored.
#[derive(Deserialize)]
struct WatchedRow {
    purchase: TxHash,
    utxo: TxRef,
    address: String,
    datum: String,
    locked: Lovelace,
    creator: String,
    share: Lovelace,
    spender: Option<TxHash>,
}

/// What a transaction changes.
struct Changes {
    statements: Vec<Statement>,
    /// Entries of ours that cannot take effect any more.
    overtaken: Vec<TxHash>,
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Records what these transactions, those of one block in its order, did to escrows of ours.
    pub(super) async fn record(
        &self,
        mut found: Vec<Found>,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(), TickError> {
        found.sort_by_key(|found| found.height);
        let inputs: Vec<String> = found.iter().flat_map(|found| &found.utxos.spent).map(ToString::to_string).collect();
        if inputs.is_empty() {
            return Ok(());
        }
        let rows: Vec<WatchedRow> = self.database.run(watched(&inputs)).await?.all_json()?;
        let mut open = BTreeMap::new();
        for row in rows {
            match Watched::try_from(row) {
                Ok(watched) => drop(open.insert(watched.escrow.utxo.reference, watched)),
                Err(error) => report.notes.push(error.to_string()),
            }
        }
        let (mut statements, mut overtaken) = (vec![], vec![]);
        for found in &found {
            let changes = changes(found, &mut open, view, report);
            overtaken.extend(changes.overtaken.into_iter().map(|tx| (tx, found.utxos.id)));
            if !changes.statements.is_empty() {
                statements.push(changes.statements);
            }
        }
        self.write_each(statements, report).await;
        for (tx, by) in overtaken {
            if self.outbox().overtaken(&tx, &by, self.now).await? {
                report.notes.push(format!("{by} was before {tx}"));
            }
        }
        Ok(())
    }
}

/// What one transaction changes; escrows that are open go on in `open`.
fn changes(found: &Found, open: &mut BTreeMap<TxRef, Watched>, view: &TickView, report: &mut Report) -> Changes {
    let utxos = &found.utxos;
    let spent: Vec<Watched> = utxos.spent.iter().filter_map(|input| open.remove(input)).collect();
    let mut changes = Changes { statements: vec![], overtaken: vec![] };
    if spent.is_empty() {
        return changes;
    }
    let mut payments = Payments::of(&utxos.made);
    let purchases: Vec<TxHash> = spent.iter().map(|watched| watched.purchase).collect();
    for watched in spent {
        report.steps = report.steps.saturating_add(1);
        changes.overtaken.extend(watched.spender.filter(|tx| *tx != utxos.id));
        let (step, next) = watched.after(found, &mut payments, view, report);
        changes.statements.push(step);
        if let Some(next) = next {
            open.insert(next.escrow.utxo.reference, next);
        }
    }
    let which = json!(purchases).to_string();
    changes.statements.extend(escrows_follow_steps("SELECT value FROM json_each(?1)", &which));
    changes
}

/// The statement that reads the escrows that these outputs are.
fn watched(outputs: &[String]) -> Statement {
    statement!(
        "SELECT json_object('purchase', e.purchase_id, 'utxo', e.utxo, 'address', e.address, 'datum', e.datum, \
           'locked', CAST(e.locked_lovelace AS TEXT), 'creator', p.seller_address, \
           'share', CAST(p.creator_lovelace AS TEXT), \
           'spender', (SELECT tx_id FROM reservations WHERE tx_in = e.utxo)) \
         FROM escrows e JOIN purchases p ON p.id = e.purchase_id \
         WHERE e.utxo IN (SELECT value FROM json_each(?1))",
        json!(outputs).to_string()
    )
}

impl TryFrom<WatchedRow> for Watched {
    type Error = DatabaseError;

    fn try_from(row: WatchedRow) -> Result<Self, DatabaseError> {
        let cbor = hex::decode(&row.datum).ok();
        let read = cbor.and_then(|cbor| Some((Datum::from_cbor(&cbor).ok()?, cbor)));
        let broken = || DatabaseError(format!("the escrow of {} cannot be read", row.purchase));
        let (datum, cbor) = read.ok_or_else(broken)?;
        let utxo = Utxo {
            reference: row.utxo,
            address: row.address,
            value: Value { lovelace: row.locked, ..Value::default() },
            inline_datum: Some(cbor),
            datum_hash: None,
            reference_script: None,
        };
        let WatchedRow { purchase, creator, share, spender, .. } = row;
        Ok(Self { purchase, escrow: Escrow { utxo, datum }, creator, share, spender })
    }
}

impl Watched {
    /// What a transaction that spent it made of it: the statement, and the escrow where it goes on.
    fn after(
        self,
        found: &Found,
        payments: &mut Payments<'_>,
        view: &TickView,
        report: &mut Report,
    ) -> (Statement, Option<Self>) {
        let old = self.escrow.utxo.reference;
        match self.escrow.spent_into(&found.utxos.made) {
            Spent::Continues(next) => {
                let next = Self { escrow: *next, spender: None, ..self };
                let status = Status::from(next.escrow.datum.state);
                (next.step(&old, found, Some(next.escrow.utxo.reference), status, false, view), Some(next))
            }
            Spent::Ended(ending) => {
                let datum = &self.escrow.datum;
                let unanswered = matches!(datum.state, State::FundsLocked | State::RefundRequested);
                let ours = view.seller.is_some() && datum.seller.key_address() == view.seller;
                if ending == Ending::Refunded && unanswered && ours {
                    let purchase = self.purchase;
                    report
                        .alarms
                        .push(format!("{purchase} was refunded for want of a result: its creator's score fell"));
                }
                let paid = ending == Ending::Withdrawn
                    && self.share > Lovelace::ZERO
                    && payments.take(&self.creator, self.share);
                (self.step(&old, found, None, Status::from(ending), paid, view), None)
            }
        }
    }

    /// The statement that adds the step, where the escrow is still what was spent, and no rollback was undone meanwhile.
    fn step(
        &self,
        old: &TxRef,
        found: &Found,
        utxo: Option<TxRef>,
        status: Status,
        creator_paid: bool,
        view: &TickView,
    ) -> Statement {
        let datum = &self.escrow.datum;
        statement!(
            format!(
                "INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, \
                   locked_lovelace, result_hash, creator_paid, unsure) \
                 SELECT id, ?2, ?3, {}, ?4, ?5, ?6, ?7, CAST(?8 AS INTEGER), ?9, ?10, \
                   NOT EXISTS (SELECT 1 FROM outbox WHERE tx_id = ?2 AND state = 'included') FROM purchases \
                 WHERE id = ?1 AND {} = ?11 AND (SELECT rollbacks FROM chain_reading) = ?12 ON CONFLICT DO NOTHING",
                newest("position + 1", "purchases.id"),
                newest("utxo", "purchases.id"),
            ),
            self.purchase,
            found.utxos.id,
            found.height,
            found.time_ms,
            status.name(),
            utxo,
            hex::encode(datum.to_cbor()),
            self.escrow.utxo.value.lovelace,
            datum.has_result().then(|| hex::encode(&datum.result_hash)),
            creator_paid,
            old,
            view.rollbacks,
        )
    }
}
