//! The stored settlements.

use cardano::{Address, TxHash, slots::Millis};
use outbox::{Entry, EntryState, Guard, Kind, NewEntry, Provenance};
use serde::Deserialize;
use serde_json::json;
use sql::{Read, Write};
use x402_cardano::{exact::VerifiedPayment, method::Offered};

/// A stored settlement, without its outbox entry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Settlement {
    /// SHA-256 of the requirements, in hex.
    pub requirements: String,
    /// Address of the payer.
    pub payer: Address,
    /// Time in POSIX milliseconds at which a caller was told that the payment is settled; `None` if this has not
    /// happened.
    pub reported_at_ms: Option<Millis>,
}

/// Builds the query for the settlement of a transaction.
pub(crate) fn by_tx(tx: &TxHash) -> Read<Option<Settlement>> {
    sql::read!("SELECT requirements, payer, reported_at_ms FROM settlements WHERE tx_id = ?1", tx)
}

/// Builds the outbox entry of a verified payment. Its guard prevents the entry from being recorded if the same terms
/// were used for another transaction.
pub(crate) fn entry(payment: &VerifiedPayment, offered: &Offered) -> NewEntry {
    let terms = offered.terms_digest().map(|digest| digest.to_string());
    NewEntry {
        tx: payment.tx_id,
        kind: Kind::Settlement,
        purpose: match &terms {
            Some(terms) => format!("settlement under {terms}"),
            None => format!("settlement {}", payment.tx_id),
        },
        wallet: None,
        cbor: payment.cbor.clone(),
        valid_until: payment.valid_until,
        provenance: Provenance::Unknown,
        spends: payment.inputs.clone(),
        collateral: vec![],
        acts_on: vec![],
        guard: terms.map(|terms| Guard {
            blocked_by: "SELECT max('these terms were used') FROM settlements \
                WHERE terms = json_extract(?1, '$.terms') AND tx_id <> json_extract(?1, '$.tx')",
            facts: json!({ "terms": terms, "tx": payment.tx_id.to_string() }),
        }),
    }
}

/// Builds the statement that stores the settlement if its outbox entry was just recorded. It replaces a settlement
/// whose transaction was refused before.
pub(crate) fn insert(payment: &VerifiedPayment, offered: &Offered, requirements: &str, now: Millis) -> Write {
    sql::write!(
        "INSERT INTO settlements (tx_id, requirements, terms, payer) \
         SELECT tx_id, ?2, ?3, ?4 FROM outbox WHERE tx_id = ?1 AND kind = 'settlement' AND state = 'claimed' \
           AND attempts = 1 AND attempted_at_ms = ?5 \
         ON CONFLICT (tx_id) DO UPDATE SET requirements = excluded.requirements, payer = excluded.payer",
        payment.tx_id,
        requirements,
        offered.terms_digest().map(|digest| digest.to_string()),
        payment.payer,
        now,
    )
}

/// Builds the statement that marks the settlement as reported. It returns a row to the first caller only.
pub(crate) fn report(tx: &TxHash, now: Millis) -> Write<Option<String>> {
    sql::write!(
        "UPDATE settlements SET reported_at_ms = ?2 WHERE tx_id = ?1 AND reported_at_ms IS NULL RETURNING tx_id",
        tx,
        now,
    )
}

/// Returns whether an entry of the outbox is a settlement that can be continued.
pub(crate) fn continues(entry: &Entry) -> bool {
    entry.kind == Kind::Settlement && entry.state != EntryState::Refused
}
