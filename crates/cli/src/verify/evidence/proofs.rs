//! The table of a file's fields: the value of each, and who proves it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// The party that proves a field. If there are several, the first one is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Prover {
    /// Blocks of the chain have the transactions.
    Chain,
    /// The service signed it, with a key that it publishes or that the verifier pinned.
    Service,
    /// The seller that the escrow names signed the terms.
    Seller,
    /// The transactions are signed, whether a block has them or not.
    Signatures,
}

/// A field with its value, as people read it.
pub struct Row {
    pub field: &'static str,
    pub value: String,
    pub by: BTreeSet<Prover>,
}

/// Every field of a file. One without a prover is a claim.
#[derive(Default)]
pub struct Proofs(Vec<Row>);

impl Proofs {
    /// Adds a field, with those of the provers that do prove it.
    pub fn add(&mut self, field: &'static str, value: impl ToString, by: &[(Prover, bool)]) {
        let by = by.iter().filter(|(_, proves)| *proves).map(|(prover, _)| *prover).collect();
        self.0.push(Row { field, value: value.to_string(), by });
    }

    /// Records that blocks have all transactions, where the file says, and that none is missing.
    pub fn are_on_chain(&mut self) {
        for row in &mut self.0 {
            let follows = matches!(row.field, "steps" | "purchase.status");
            if follows || row.by.contains(&Prover::Signatures) {
                row.by.insert(Prover::Chain);
            }
        }
    }

    /// Whether anyone proves the field.
    pub fn has(&self, field: &str) -> bool {
        self.0.iter().any(|row| row.field == field && !row.by.is_empty())
    }

    /// The fields that nobody proves.
    pub fn claims(&self) -> Vec<&'static str> {
        self.by(None).map(|row| row.field).collect()
    }

    /// The rows whose first prover is this one; the claims for `None`.
    pub fn by(&self, prover: Option<Prover>) -> impl Iterator<Item = &Row> {
        self.0.iter().filter(move |row| row.by.first().copied() == prover)
    }

    /// The fields with their provers.
    pub fn table(&self) -> BTreeMap<&'static str, &BTreeSet<Prover>> {
        self.0.iter().map(|row| (row.field, &row.by)).collect()
    }
}
