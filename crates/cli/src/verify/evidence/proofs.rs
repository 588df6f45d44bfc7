//! The table of an evidence file's fields: the value of each, and the parties that prove it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// A party that proves a field, in descending order of strength. If several parties prove a field, only the strongest
/// is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Prover {
    /// The chain includes the transactions.
    Chain,
    /// The service signed the field, with a key that the service publishes or that the verifier gave.
    Service,
    /// The seller named in the escrow signed terms that contain the field.
    Seller,
    /// The parties signed the transactions. The chain was not asked whether it includes the transactions.
    Signatures,
}

/// A field of an evidence file: its value as text, and the parties whose signatures prove the value.
pub struct Row {
    pub field: &'static str,
    pub value: String,
    pub by: BTreeSet<Prover>,
}

/// Every field of an evidence file. A field that nobody proves is called a claim.
#[derive(Default)]
pub struct Proofs(Vec<Row>);

impl Proofs {
    /// Adds a field of the evidence. `by` says for each party whether it proves the field.
    pub fn add(&mut self, field: &'static str, value: impl ToString, by: &[(Prover, bool)]) {
        let by = by.iter().filter(|(_, proves)| *proves).map(|(prover, _)| *prover).collect();
        self.0.push(Row { field, value: value.to_string(), by });
    }

    /// Records that the chain includes exactly the file's transactions, and so proves the fields that depend on them.
    pub fn are_on_chain(&mut self) {
        for row in &mut self.0 {
            let follows = matches!(row.field, "steps" | "purchase.status");
            if follows || row.by.contains(&Prover::Signatures) {
                row.by.insert(Prover::Chain);
            }
        }
    }

    /// Returns whether any party proves the field.
    pub fn has(&self, field: &str) -> bool {
        self.0.iter().any(|row| row.field == field && !row.by.is_empty())
    }

    /// Returns the names of the fields that nobody proves.
    pub fn claims(&self) -> Vec<&'static str> {
        self.by(None).map(|row| row.field).collect()
    }

    /// Returns the rows whose strongest proof is by this party. `None` selects the rows without proof.
    pub fn by(&self, prover: Option<Prover>) -> impl Iterator<Item = &Row> {
        self.0.iter().filter(move |row| row.by.first().copied() == prover)
    }

    /// Returns each field's name with the parties that prove it.
    pub fn table(&self) -> BTreeMap<&'static str, &BTreeSet<Prover>> {
        self.0.iter().map(|row| (row.field, &row.by)).collect()
    }
}
