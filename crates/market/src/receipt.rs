//! Cost of a purchase for its buyer: the price, the amount locked with it, the network fee, and the refund.

use api_types::PurchaseStatus;
use cardano::{Lovelace, TxHash, tx::SignedTx};
use serde::{Deserialize, Deserializer, de::Error};
use sql::Read;

/// Amounts that a buyer paid for a purchase and got back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Receipt {
    /// The listing's price.
    pub price: Lovelace,
    /// Network fee of the payment or lock. `None` if the transaction's bytes are not stored.
    #[serde(rename = "transaction", deserialize_with = "fee_of")]
    pub fee: Option<Lovelace>,
    /// Amount locked in the contract; `None` for instant purchases.
    pub locked: Option<Lovelace>,
}

impl Receipt {
    /// Returns the amount that was locked in addition to the price. The buyer gets it back in any case.
    #[must_use]
    pub fn collateral(&self) -> Lovelace {
        self.locked.map_or(Lovelace::ZERO, |locked| locked.saturating_sub(self.price))
    }

    /// Returns the amount that left the buyer's wallet; `None` if the fee is not known.
    #[must_use]
    pub fn paid(&self) -> Option<Lovelace> {
        self.locked.unwrap_or(self.price).checked_add(self.fee?)
    }

    /// Returns the amount that the contract paid back to the buyer. `None` for instant purchases, and while the
    /// contract holds the money.
    #[must_use]
    pub fn returned(&self, status: PurchaseStatus) -> Option<Lovelace> {
        match status {
            PurchaseStatus::Withdrawn => self.locked.map(|_| self.collateral()),
            PurchaseStatus::Refunded => self.locked,
            _ => None,
        }
    }
}

/// Decodes the network fee from a transaction's hexadecimal CBOR; `None` if the CBOR is not stored.
fn fee_of<'de, D: Deserializer<'de>>(transaction: D) -> Result<Option<Lovelace>, D::Error> {
    let Some(text) = Option::<String>::deserialize(transaction)? else { return Ok(None) };
    let cbor = hex::decode(text).map_err(D::Error::custom)?;
    SignedTx::parse(&cbor).map(|tx| Some(tx.fee)).map_err(D::Error::custom)
}

/// Builds the query that reads a purchase's [`Receipt`].
pub fn read(purchase: &TxHash) -> Read<Option<Receipt>> {
    sql::read!(include_str!("receipt.sql"), purchase)
}
