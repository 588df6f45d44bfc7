//! The platform's wallet in one tick, and the outbox: what is sent is written down first, with what it spends.

use sql::{Database, Statement, exactly, statement};
use std::collections::{BTreeSet, HashSet};

use super::super::{Report, TickError, Watch, confirm};
use crate::wallet::{Promises, promises};
use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, Submission, Utxo},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    params::ProtocolParameters,
    tx::build::{BuiltTx, Wallet},
};

/// What pays for actions, read once for each tick that acts.
pub(super) struct Purse {
    pub(super) parameters: ProtocolParameters,
    address: Address,
    utxos: Vec<Utxo>,
    shown: HashSet<TxRef>,
}

/// The action that pays a creator after a dispute.
pub(super) const PAYOUT: &str = "payout";

/// An action to write down.
pub(super) struct Deed<'a> {
    pub(super) purpose: String,
    pub(super) action: &'static str,
    pub(super) purchases: Vec<TxHash>,
    pub(super) built: &'a BuiltTx,
}

/// Outputs of less are too small to be collateral, and mostly to pay for an action alone.
const CRUMB: Lovelace = Lovelace::from_ada(5);
/// Crumbs that one action gathers.
const MOST_CRUMBS: usize = 3;

fn is_crumb(utxo: &Utxo) -> bool {
    let plain = utxo.value.assets.is_empty() && utxo.inline_datum.is_none() && utxo.datum_hash.is_none();
    plain && utxo.reference_script.is_none() && utxo.value.lovelace < CRUMB
}

static NONE: BTreeSet<TxRef> = BTreeSet::new();

impl Purse {
    pub(super) const fn wallet(&self) -> Wallet<'_> {
        Wallet { address: self.address, utxos: self.utxos.as_slice(), reserved: &NONE }
    }

    /// The smallest of its outputs, where there are many: one more input costs little, and what is gathered need not be
    /// read again, page after page, in every tick that acts.
    pub(super) fn crumbs(&self) -> Vec<Utxo> {
        let mut crumbs: Vec<&Utxo> = self.utxos.iter().filter(|utxo| is_crumb(utxo)).collect();
        crumbs.sort_by_key(|utxo| (utxo.value.lovelace, utxo.reference));
        crumbs.into_iter().take(MOST_CRUMBS).cloned().collect()
    }

    /// Leaves out what the provider does not show: change of ours that is on its way, or that somebody with the same key
    /// has spent elsewhere. Whether there was any.
    pub(super) fn distrust(&mut self) -> bool {
        let before = self.utxos.len();
        self.utxos.retain(|utxo| self.shown.contains(&utxo.reference));
        self.utxos.len() < before
    }
}

impl<D: Database, C: Chain + History + Evaluate> Watch<'_, D, C> {
    /// What the platform's wallet may spend now.
    pub(super) async fn purse<'p>(
        &self,
        purse: &'p mut Option<Purse>,
        platform: &SigningKey,
    ) -> Result<&'p mut Purse, TickError> {
        let known = match purse.take() {
            Some(known) => known,
            None => {
                let address = platform.enterprise_address();
                let parameters = self.chain.protocol_parameters().await?;
                let shown = self.chain.utxos_at(&address.to_string(), |_| false).await?;
                let [sent, reserved] = exactly(self.database.batch(promises(&address, self.now).into()).await?)?;
                let utxos = Promises::read(&address, &sent, &reserved)?.spendable(&shown);
                let shown = shown.into_iter().map(|utxo| utxo.reference).collect();
                Purse { parameters, address, utxos, shown }
            }
        };
        Ok(purse.insert(known))
    }

    /// Writes down, then sends. Where another tick was first, nothing is sent. Whether the ledger did not refuse it.
    pub(super) async fn send(
        &self,
        deed: &Deed<'_>,
        purse: &mut Purse,
        report: &mut Report,
    ) -> Result<bool, TickError> {
        let facts = &deed.built.facts;
        let taken = |utxo: &Utxo| facts.inputs.contains(&utxo.reference) || facts.collateral.contains(&utxo.reference);
        purse.utxos.retain(|utxo| !taken(utxo));
        let purchases: Vec<String> = deed.purchases.iter().map(ToString::to_string).collect();
        let what = format!("{} of {}", deed.action, purchases.join(", "));
        let written = self.database.batch(self.write_down(deed, &purchases, &purse.address)).await?;
        if written.first().is_none_or(|outcome| outcome.first().is_none()) {
            report.notes.push(format!("{what} is being done already"));
            return Ok(true);
        }
        report.acted.push(format!("{what}: {}", facts.tx_id));
        match self.chain.submit(&deed.built.cbor).await? {
            Submission::Accepted => {
                self.database.run(confirm::submitted(&facts.tx_id)).await?;
                purse.shown.extend(facts.change.iter().map(|utxo| utxo.reference));
                purse.utxos.extend(facts.change.iter().cloned());
                Ok(true)
            }
            // A payment to a creator spends no escrow, so the ledger would take another one as well. A provider that passed
            // this one on before it refused must not make us pay twice: it stays, until it is in a block or too late.
            Submission::Refused(reason) if deed.action == PAYOUT => {
                report.notes.push(format!("the ledger refused {} for now: {reason}", facts.tx_id));
                Ok(false)
            }
            Submission::Refused(reason) => {
                report.notes.push(format!("the ledger refused {}: {reason}", facts.tx_id));
                self.database.run(refused(&facts.tx_id, &reason)).await?;
                Ok(false)
            }
        }
    }

    fn write_down(&self, deed: &Deed<'_>, purchases: &[String], wallet: &Address) -> Vec<Statement> {
        let facts = &deed.built.facts;
        let tx = facts.tx_id.to_string();
        let json = |inputs: Vec<&TxRef>| {
            serde_json::json!(inputs.into_iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
        };
        let spent = json(facts.inputs.iter().collect());
        let used = json(facts.inputs.iter().chain(&facts.collateral).collect());
        vec![
            statement!(
                "INSERT INTO settlements (tx_id, purpose, cbor, state, valid_until_slot, attempts, attempted_at_ms, \
                   created_at_ms, wallet, action) SELECT ?1, ?2, ?3, 'claimed', ?4, 1, ?5, ?5, ?6, ?7 \
                 WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE tx_in IN (SELECT value FROM json_each(?8))) \
                 ON CONFLICT DO NOTHING RETURNING tx_id",
                tx.as_str(),
                deed.purpose.as_str(),
                hex::encode(&deed.built.cbor),
                facts.valid_until_slot,
                self.now,
                wallet.to_string(),
                deed.action,
                used.as_str(),
            ),
            statement!(
                "INSERT INTO reservations (tx_in, tx_id, spent) \
                 SELECT j.value, s.tx_id, j.value IN (SELECT value FROM json_each(?3)) \
                 FROM settlements s, json_each(?2) j WHERE s.tx_id = ?1 AND s.state = 'claimed' ON CONFLICT DO NOTHING",
                tx.as_str(),
                used.as_str(),
                spent.as_str(),
            ),
            statement!(
                "INSERT INTO settlement_purchases (tx_id, purchase_id) SELECT s.tx_id, j.value \
                 FROM settlements s, json_each(?2) j WHERE s.tx_id = ?1 AND s.state = 'claimed' ON CONFLICT DO NOTHING",
                tx.as_str(),
                serde_json::json!(purchases).to_string(),
            ),
        ]
    }
}

/// Refused at its first attempt: nothing was done, and its inputs are free again.
fn refused(tx: &TxHash, reason: &str) -> Statement {
    statement!(
        "UPDATE settlements SET state = 'refused', reason = ?2 WHERE tx_id = ?1 AND attempts = 1 AND state = 'claimed'",
        tx.to_string(),
        reason
    )
}
