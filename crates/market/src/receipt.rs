//! What a purchase cost its buyer, as the chain has it: the price, what was locked with it, the network's fee, and what the
//! contract paid back.

use api_types::PurchaseStatus;
use cardano::{Lovelace, TxHash, tx::SignedTx};
use serde::{Deserialize, Deserializer, de::Error};
use sql::{Statement, statement};

/// A receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// What the seller asked.
    pub price: Lovelace,
    /// The network's fee for the payment or the lock. `None` where that transaction's bytes are not kept.
    #[serde(default, rename = "transaction", deserialize_with = "fee_of")]
    pub fee: Option<Lovelace>,
    /// What the lock put into the contract; `None` for what was paid at once.
    #[serde(default)]
    pub locked: Option<Lovelace>,
}

impl Receipt {
    /// Locked beyond the price, so that the escrow can be carried forward: it comes back however the sale ends.
    #[must_use]
    pub fn collateral(&self) -> Lovelace {
        self.locked.map_or(Lovelace::ZERO, |locked| locked.saturating_sub(self.price))
    }

    /// What left the buyer's wallet; `None` where the fee is not known.
    #[must_use]
    pub fn paid(&self) -> Option<Lovelace> {
        self.locked.unwrap_or(self.price).checked_add(self.fee?)
    }

    /// What the contract paid back to the buyer; `None` while it holds the money, and for what was paid at once.
    #[must_use]
    pub fn returned(&self, status: PurchaseStatus) -> Option<Lovelace> {
        match status {
            PurchaseStatus::Withdrawn => self.locked.map(|_| self.collateral()),
            PurchaseStatus::Refunded => self.locked,
            _ => None,
        }
    }
}

/// The fee that a transaction, hexadecimal of its CBOR, pays.
fn fee_of<'de, D: Deserializer<'de>>(transaction: D) -> Result<Option<Lovelace>, D::Error> {
    let Some(text) = Option::<String>::deserialize(transaction)? else { return Ok(None) };
    let cbor = hex::decode(text).map_err(D::Error::custom)?;
    SignedTx::parse(&cbor).map(|tx| Some(tx.fee)).map_err(D::Error::custom)
}

/// The statement that reads a purchase's receipt as JSON.
pub fn read(purchase: &TxHash) -> Statement {
    statement!(include_str!("receipt.sql"), purchase)
}
