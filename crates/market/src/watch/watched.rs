//! An escrow that is watched, and what becomes of it.

use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Utxo, Value},
    history::AddressTransaction,
    tx::TransactionEffects,
};
use escrow::{
    Datum, Deployment,
    plan::Escrow,
    spend::{Ending, Spent},
};
use serde::Deserialize;
use sql::{DatabaseError, Statement, statement};

use super::{index::Ours, payments::Payments};
use crate::{fees::creator_share, purchase};

/// An escrow that is watched.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    purchase: TxHash,
    pub escrow: Escrow,
    creator: String,
    payout: Lovelace,
}

/// As it is stored.
#[derive(Deserialize)]
pub(super) struct WatchedRow {
    purchase: TxHash,
    pub utxo: TxRef,
    address: String,
    datum: String,
    locked: Lovelace,
    creator: String,
    price: Lovelace,
}

impl WatchedRow {
    pub fn watched(self) -> Result<Watched, DatabaseError> {
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
        let payout = creator_share(self.price);
        Ok(Watched { purchase: self.purchase, escrow: Escrow { utxo, datum }, creator: self.creator, payout })
    }
}

/// The escrow that a lock of a buyer makes.
pub(super) fn locked(ours: &Ours, effects: &TransactionEffects, deployment: &Deployment) -> Option<Watched> {
    let escrow = effects.made.iter().find_map(|output| Escrow::read(output.clone(), deployment).ok())?;
    Some(Watched { purchase: ours.tx, escrow, creator: ours.creator.clone()?, payout: creator_share(ours.price?) })
}

impl Watched {
    /// What a transaction that spent it made of it: the statements, and the escrow where it goes on.
    pub fn after(
        self,
        touch: &AddressTransaction,
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

    fn step(
        &self,
        touch: &AddressTransaction,
        utxo: Option<TxRef>,
        status: &'static str,
        creator_due: bool,
    ) -> Statement {
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
