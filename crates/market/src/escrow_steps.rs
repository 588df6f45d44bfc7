//! Decodes transactions that spend escrows of this service, and records each as a *step*, with the escrow's state after
//! it.

use api_types::{Alarm, AlarmName};
use std::collections::BTreeMap;

use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, Inclusion, Tip, Utxo, Value},
    slots::Millis,
    tx::TransactionUtxos,
};
use escrow::{
    Datum, Deployment, State,
    plan::Escrow,
    spend::{Ending, Spent},
};
use outbox::{Outbox, OutboxError, by_id};
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, One, Read, Write};

use crate::{
    purchase::{Status, newest},
    transitions,
};

/// An included transaction whose scripts succeeded.
pub(crate) struct IncludedTx {
    pub utxos: TransactionUtxos,
    pub height: u64,
    /// Time of the including block, POSIX ms.
    pub time_ms: Millis,
}

/// Result of looking up the transaction that spent an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spending {
    Unspent,
    /// The output was spent by this transaction, which is now recorded as a step of the escrow.
    SpentBy(TxHash),
    /// The provider does not know the output or an including block (yet), or the transaction cannot be decoded.
    Unknown,
}

/// Result of recording escrow steps: counts, alarms and log lines.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Number of recorded steps.
    pub steps: u32,
    /// Number of transactions that could not be decoded.
    pub unreadable: u32,
    pub alarms: Vec<Alarm>,
    pub notes: Vec<String>,
}

impl Recorded {
    fn absorb(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
        self.alarms.extend(other.alarms);
        self.notes.extend(other.notes);
    }
}

/// Records steps of escrows from transactions on the chain. `tip` was the newest block when the transactions were read.
#[derive(Clone, Copy)]
pub(crate) struct StepRecorder<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    pub tip: Tip,
    /// Number of recorded rollbacks when the transactions were read. If the number has changed since, nothing is
    /// written. `None` for the service's own transactions, whose steps are written in the batch that records the
    /// inclusion.
    pub rollbacks: Option<u64>,
    /// Address of the platform, if this service sells with protection. An alarm is raised if one of its sales is
    /// refunded because no result was posted.
    pub seller: Option<Address>,
}

/// Builds the query that reads the number of rollbacks recorded so far.
pub(crate) fn rollbacks() -> Read<One<u64>> {
    sql::read!("SELECT rollbacks FROM chain_reading")
}

/// An escrow that has not ended, with its sale.
#[derive(Clone, Debug)]
struct OpenEscrow {
    purchase: TxHash,
    escrow: Escrow,
    /// Address of the creator, who is paid when the seller collects the escrow's money.
    creator: String,
    share: Lovelace,
    /// Ids of the outbox's transactions that spend this escrow.
    spenders: Vec<TxHash>,
}

#[derive(Deserialize)]
struct OpenEscrowRow {
    purchase: TxHash,
    utxo: TxRef,
    address: String,
    datum: String,
    locked: Lovelace,
    creator: String,
    share: Lovelace,
    #[serde(deserialize_with = "sql::json")]
    spenders: Vec<TxHash>,
}

/// Statements that record steps of escrows, with the outbox entries that can no longer be included.
#[derive(Default)]
pub(crate) struct Steps {
    /// Statements to write, grouped by the transaction whose steps they record.
    pub statements: Vec<Vec<Write>>,
    /// Outbox entries that can no longer be included, each paired with the transaction that spent one of its inputs.
    conflicts: Vec<(TxHash, TxHash)>,
    recorded: Recorded,
}

/// Returns whether `block` can belong to the chain that ends with `tip`: its height is lower, or it is `tip` itself. A
/// node on another fork may show a different block at the height of `tip`.
pub(crate) fn knows(tip: &Tip, block: &Inclusion) -> bool {
    block.height < tip.height || block.block == tip.hash
}

/// Returns the escrow that a transaction created in `output`. If `output` is `None`, returns the escrow in the
/// transaction's first output to the contract.
pub(crate) fn escrow_in(cbor: &[u8], output: Option<&TxRef>, deployment: &Deployment) -> Option<Escrow> {
    let made = TransactionUtxos::read(cbor).ok()?.created.into_iter();
    let mut named = made.filter(|made| output.is_none_or(|output| made.reference == *output));
    named.find_map(|made| Escrow::read(made, deployment).ok())
}

impl<D: Database, C: Chain> StepRecorder<'_, D, C> {
    /// Follows an escrow from its last known output by one step, and records the step.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn follow(&self, from: &TxRef, recorded: &mut Recorded) -> Result<Spending, OutboxError> {
        let Some(output) = self.chain.output(from).await? else { return Ok(Spending::Unknown) };
        let Some(by) = output.spent_by else { return Ok(Spending::Unspent) };
        let Some(found) = self.read_included(&by, recorded).await? else { return Ok(Spending::Unknown) };
        // A later era may add a field with inputs that this code does not decode.
        if !found.utxos.spent.contains(from) {
            recorded.alarms.push(unreadable(&by, &"it does not name the output that it spent"));
            return Ok(Spending::Unknown);
        }
        recorded.absorb(self.record(vec![found]).await?);
        Ok(Spending::SpentBy(by))
    }

    /// Reads a transaction that spent an escrow. Returns `None` if the provider does not know the transaction or shows
    /// no block that includes it, or if it cannot be decoded.
    async fn read_included(&self, tx: &TxHash, recorded: &mut Recorded) -> Result<Option<IncludedTx>, OutboxError> {
        let own = self.database.fetch(by_id(tx)).await?;
        let cbor = match own {
            Some(entry) if !entry.cbor.is_empty() => entry.cbor,
            _ => match self.chain.transaction(tx).await? {
                Some(cbor) => cbor,
                None => return Ok(None),
            },
        };
        let utxos = match TransactionUtxos::read(&cbor) {
            Ok(utxos) => utxos,
            Err(error) => {
                recorded.unreadable = recorded.unreadable.saturating_add(1);
                recorded.alarms.push(unreadable(tx, &error));
                return Ok(None);
            }
        };
        let block = self.chain.inclusion_of(tx).await?.filter(|block| block.valid && knows(&self.tip, block));
        Ok(block.map(|block| IncludedTx { utxos, height: block.height, time_ms: block.time_ms }))
    }

    /// Records the effects of these transactions on our escrows, in block order.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn record(&self, found: Vec<IncludedTx>) -> Result<Recorded, DatabaseError> {
        let Steps { statements, conflicts, mut recorded } = self.steps(found).await?;
        recorded.notes.extend(write_each(self.database, statements).await);
        let outbox = Outbox { database: self.database, chain: self.chain, hook: &transitions::statements };
        for (tx, by) in conflicts {
            if outbox.give_up_conflicting(&tx, &by).await? {
                recorded.notes.push(format!("{tx} conflicts with {by}, which was included first"));
            }
        }
        Ok(recorded)
    }

    /// Returns the statements that record these transactions.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn steps(&self, mut found: Vec<IncludedTx>) -> Result<Steps, DatabaseError> {
        let mut steps = Steps::default();
        found.sort_by_key(|found| found.height);
        let inputs: Vec<String> = found.iter().flat_map(|found| &found.utxos.spent).map(ToString::to_string).collect();
        if inputs.is_empty() {
            return Ok(steps);
        }
        let rows = self.database.fetch(open_escrows(&inputs)).await?;
        let mut open = BTreeMap::new();
        for row in rows {
            let purchase = row.purchase;
            match row.escrow() {
                Some(watched) => drop(open.insert(watched.escrow.utxo.reference, watched)),
                None => steps.recorded.notes.push(format!("the escrow of {purchase} cannot be read")),
            }
        }
        for found in &found {
            let spent: Vec<OpenEscrow> = found.utxos.spent.iter().filter_map(|input| open.remove(input)).collect();
            let (mut payouts, mut statements) = (Payouts::of(&found.utxos.created), vec![]);
            for watched in spent {
                steps.recorded.steps = steps.recorded.steps.saturating_add(1);
                let conflicts = watched.spenders.iter().filter(|tx| **tx != found.utxos.id);
                steps.conflicts.extend(conflicts.map(|tx| (*tx, found.utxos.id)));
                let (statement, next) = self.step_from(watched, found, &mut payouts, &mut steps.recorded);
                statements.push(statement);
                // The escrow's new output replaces the old one.
                open.extend(next.map(|next| (next.escrow.utxo.reference, next)));
            }
            if !statements.is_empty() {
                steps.statements.push(statements);
            }
        }
        Ok(steps)
    }

    /// Returns the statement that records how a transaction spent an escrow, and, if the escrow continues, the escrow
    /// with its new output.
    fn step_from(
        &self,
        watched: OpenEscrow,
        found: &IncludedTx,
        payouts: &mut Payouts<'_>,
        recorded: &mut Recorded,
    ) -> (Write, Option<OpenEscrow>) {
        let old = watched.escrow.utxo.reference;
        match watched.escrow.spent_into(&found.utxos.created) {
            Spent::Continues(next) => {
                let next = OpenEscrow { escrow: *next, spenders: vec![], ..watched };
                (self.step(&next, found, &old, (Status::from(next.escrow.datum.state), false)), Some(next))
            }
            Spent::Ended(ending) => {
                let datum = &watched.escrow.datum;
                let unanswered = matches!(datum.state, State::FundsLocked | State::RefundRequested);
                let ours = self.seller.is_some() && datum.seller.key_address() == self.seller;
                if ending == Ending::Refunded && unanswered && ours {
                    let message = format!(
                        "{} was refunded because no result was posted in time: its seller's reputation fell",
                        watched.purchase
                    );
                    recorded.alarms.push(Alarm::new(AlarmName::ResultMissed, message));
                }
                let creator_paid = ending == Ending::Withdrawn
                    && watched.share > Lovelace::ZERO
                    && payouts.take_output(&watched.creator, watched.share);
                (self.step(&watched, found, &old, (Status::from(ending), creator_paid)), None)
            }
        }
    }

    /// Builds the statement that inserts a step of an escrow, with the escrow's status after it and whether the creator
    /// was paid.
    ///
    /// Inserts nothing if another step was recorded meanwhile, or if a rollback was recorded since the transaction was
    /// read. For a transaction of the service itself, the block is taken from the outbox entry.
    fn step(
        &self,
        after: &OpenEscrow,
        found: &IncludedTx,
        from: &TxRef,
        (status, creator_paid): (Status, bool),
    ) -> Write {
        let Escrow { utxo, datum } = &after.escrow;
        let continues_as = Some(utxo.reference).filter(|now| now != from);
        sql::write!(
            format!(
                include_str!("insert_step.sql"),
                position = newest("position + 1", "purchases.id"),
                spent = newest("utxo", "purchases.id"),
            ),
            after.purchase,
            found.utxos.id,
            found.height,
            found.time_ms,
            status.name(),
            continues_as,
            hex::encode(datum.to_cbor()),
            utxo.value.lovelace,
            datum.has_result().then(|| hex::encode(&datum.result_hash)),
            creator_paid,
            from,
            self.rollbacks,
        )
    }
}

/// Outputs of a transaction that can pay creators. Each output counts as the payout of one sale only.
struct Payouts<'a>(Vec<&'a Utxo>);

impl<'a> Payouts<'a> {
    fn of(made: &'a [Utxo]) -> Self {
        Self(made.iter().filter(|output| output.inline_datum.is_none() && output.datum_hash.is_none()).collect())
    }

    /// Removes the smallest output that pays at least `least` to an address, so that no other sale counts it. Returns
    /// whether there was such an output.
    fn take_output(&mut self, to: &str, least: Lovelace) -> bool {
        let pays = |(_, output): &(usize, &&Utxo)| output.address == to && output.value.lovelace >= least;
        let found = self.0.iter().enumerate().filter(pays).min_by_key(|(_, output)| output.value.lovelace);
        let Some(index) = found.map(|(index, _)| index) else { return false };
        self.0.swap_remove(index);
        true
    }
}

/// Writes independent groups of statements in one batch if possible. If the batch fails, writes each group by itself,
/// so that a failing group does not affect the others. Returns the failures for the log.
pub(crate) async fn write_each(database: &impl Database, changes: Vec<Vec<Write>>) -> Vec<String> {
    if changes.is_empty() || database.batch(changes.concat()).await.is_ok() {
        return vec![];
    }
    let mut refused = vec![];
    for change in changes {
        if let Err(error) = database.batch(change).await {
            refused.push(format!("a change could not be written: {error}"));
        }
    }
    refused
}

fn unreadable(by: &TxHash, why: &dyn std::fmt::Display) -> Alarm {
    Alarm::new(AlarmName::UnreadableSpend, format!("{by} spent an escrow and cannot be read: {why}"))
}

/// Builds the query that reads the open escrows at these outputs.
fn open_escrows(outputs: &[String]) -> Read<Vec<OpenEscrowRow>> {
    sql::read!(include_str!("open_escrows.sql"), json!(outputs).to_string())
}

impl OpenEscrowRow {
    /// Converts the row to an escrow; `None` if its datum cannot be decoded.
    fn escrow(self) -> Option<OpenEscrow> {
        let Self { purchase, utxo: reference, address, datum, locked: lovelace, creator, share, spenders } = self;
        let cbor = hex::decode(datum).ok()?;
        let datum = Datum::from_cbor(&cbor).ok()?;
        let value = Value { lovelace, ..Value::default() };
        let utxo =
            Utxo { reference, address, value, inline_datum: Some(cbor), datum_hash: None, reference_script: None };
        Some(OpenEscrow { purchase, escrow: Escrow { utxo, datum }, creator, share, spenders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_pays_for_one_sale_only() {
        let output = |ada: u32, inline_datum| Utxo {
            reference: TxRef { tx: TxHash::new([1; 32]), index: 0 },
            address: "creator".to_owned(),
            value: Value { lovelace: Lovelace::from_ada(ada), ..Value::default() },
            inline_datum,
            datum_hash: None,
            reference_script: None,
        };
        let ada = Lovelace::from_ada;
        let made = [output(9, None), output(5, None), output(50, Some(vec![0x80]))];
        let mut payouts = Payouts::of(&made);
        assert!(!payouts.take_output("another address", ada(1)));
        assert!(payouts.take_output("creator", ada(4)), "the smaller one");
        assert!(payouts.take_output("creator", ada(9)), "the larger one is left");
        assert!(!payouts.take_output("creator", ada(1)), "an output tagged for a party of an escrow pays no creator");
    }
}
