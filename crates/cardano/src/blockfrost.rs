//! Parses Blockfrost's responses into this crate's types. The parsing is pure, so it can be tested and fuzzed without a
//! network. [`Client`] implements the ports to the chain with it, over any HTTP library.
//!
//! Source: Blockfrost's OpenAPI description of the Cardano API (`/blocks/latest`, `/epochs/latest/parameters`,
//! `/txs/{hash}` with its `/cbor` and `/utxos`, `/addresses/{address}` with its `/transactions` and `/utxos`). Every
//! number that matters is checked, and a response with an unexpected shape is rejected as a whole, because a provider
//! can lie or lag.

mod client;
mod outputs;
mod parameters;
#[cfg(test)]
mod quirks;
mod stream;
#[cfg(test)]
mod tests;
mod unspent;
#[cfg(feature = "ureq")]
mod ureq;

use serde::Deserialize;

pub use client::{Client, Http, Request, Response};
pub use outputs::{TransactionOutputs, outputs};
pub use parameters::protocol_parameters;
pub use stream::{AnswerReader, Collect};
pub use unspent::{End, Holdings, LovelaceReader, UnspentOutputs, UnspentPage, unspent_outputs};
// Public for the workers, which limit how many tokens one request holds in memory.
#[doc(hidden)]
pub use unspent::{keep_most_valuable, keep_most_valuable_within};
#[cfg(feature = "ureq")]
pub use ureq::Ureq;

use crate::{
    chain::{ChainError, Inclusion, Tip},
    hash::TxHash,
    history::{AddressTransaction, MAX_BLOCKS, Place},
    tx::transaction_id,
};

/// Maximum number of transactions to read from one page of a response. Blockfrost sends 100.
const MAX_LISTED: usize = 1_000;

type ChainResult<T> = Result<T, ChainError>;

fn malformed<T>(what: &str) -> ChainResult<T> {
    Err(ChainError::Malformed(what.to_owned()))
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8], what: &str) -> ChainResult<T> {
    serde_json::from_slice(body).map_err(|error| ChainError::Malformed(format!("{what}: {error}")))
}

fn seconds_to_ms(seconds: u64) -> ChainResult<u64> {
    seconds.checked_mul(1_000).map_or_else(|| malformed("a time out of range"), Ok)
}

#[derive(Deserialize)]
struct BlockJson {
    hash: TxHash,
    height: u64,
    slot: u64,
    time: u64,
}

impl BlockJson {
    fn block(&self) -> ChainResult<Tip> {
        let Self { hash, height, slot, time } = *self;
        Ok(Tip { hash, height, slot, time_ms: seconds_to_ms(time)? })
    }
}

/// Parses the response of `/blocks/latest`: the newest block.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape.
pub fn tip(body: &[u8]) -> ChainResult<Tip> {
    json::<BlockJson>(body, "block")?.block()
}

/// Parses the response of `/blocks/{hash}/previous`: the blocks that precede a block.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape.
pub fn blocks(body: &[u8]) -> ChainResult<Vec<Tip>> {
    let blocks: Vec<BlockJson> = json(body, "blocks")?;
    if blocks.len() > MAX_BLOCKS {
        return malformed("too many blocks");
    }
    blocks.iter().map(BlockJson::block).collect()
}

/// Parses the response of `/blocks/{hash}/txs`: the ids of the transactions in a block, in order.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape.
pub fn block_transactions(body: &[u8]) -> ChainResult<Vec<TxHash>> {
    let ids: Vec<TxHash> = json(body, "a block's transactions")?;
    if ids.len() > MAX_LISTED { malformed("too many transactions") } else { Ok(ids) }
}

#[derive(Deserialize)]
struct Genesis {
    network_magic: u64,
}

/// Parses the network magic in the response of `/genesis`: 764824073 for mainnet, 1 for preprod.
///
/// # Errors
/// [`ChainError::Malformed`] if the response contains no network magic.
pub fn network_magic(body: &[u8]) -> ChainResult<u64> {
    json(body, "genesis").map(|Genesis { network_magic }| network_magic)
}

#[derive(Deserialize)]
struct InEpoch {
    epoch: u64,
}

/// Parses the number of the epoch in the response of `/blocks/latest` or `/epochs/latest/parameters`.
///
/// # Errors
/// [`ChainError::Malformed`] if the response contains no epoch.
pub fn epoch(body: &[u8]) -> ChainResult<u64> {
    json(body, "epoch").map(|InEpoch { epoch }| epoch)
}

#[derive(Deserialize)]
struct Transaction {
    hash: TxHash,
    block: TxHash,
    block_height: u64,
    block_time: u64,
    slot: u64,
    valid_contract: bool,
}

/// Parses the response of `/txs/{hash}` and returns the block that includes the transaction `asked`.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape or is about another transaction.
pub fn inclusion(body: &[u8], asked: &TxHash) -> ChainResult<Inclusion> {
    let tx: Transaction = json(body, "transaction")?;
    if tx.hash != *asked {
        return malformed("another transaction than asked for");
    }
    Ok(Inclusion {
        block: tx.block,
        height: tx.block_height,
        slot: tx.slot,
        time_ms: seconds_to_ms(tx.block_time)?,
        valid: tx.valid_contract,
    })
}

#[derive(Deserialize)]
struct Listed {
    tx_hash: TxHash,
    tx_index: u64,
    block_height: u64,
    block_time: u64,
}

/// Parses one page of `/addresses/{address}/transactions` and sorts it into chain order, because providers order the
/// transactions of a block differently.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape, or if two transactions have the same
/// position.
pub fn address_transactions(body: &[u8]) -> ChainResult<Vec<AddressTransaction>> {
    let listed: Vec<Listed> = json(body, "transactions of an address")?;
    if listed.len() > MAX_LISTED {
        return malformed("too many transactions");
    }
    let transaction = |tx: Listed| {
        let place = Place { height: tx.block_height, position: tx.tx_index };
        Ok(AddressTransaction { tx: tx.tx_hash, place, time_ms: seconds_to_ms(tx.block_time)? })
    };
    let mut transactions: Vec<AddressTransaction> = listed.into_iter().map(transaction).collect::<ChainResult<_>>()?;
    transactions.sort_by_key(|tx| tx.place);
    transactions.dedup();
    if transactions.is_sorted_by(|earlier, later| earlier.place < later.place) {
        Ok(transactions)
    } else {
        malformed("two transactions of an address at one place")
    }
}

#[derive(Deserialize)]
struct CborJson {
    cbor: String,
}

/// Parses the response of `/txs/{hash}/cbor` and returns the bytes of the transaction `asked`.
///
/// # Errors
/// [`ChainError::Malformed`] if the response does not have the documented shape or contains another transaction.
pub fn transaction(body: &[u8], asked: &TxHash) -> ChainResult<Vec<u8>> {
    let CborJson { cbor } = json(body, "transaction's CBOR")?;
    let bytes = hex::decode(cbor).or_else(|_| malformed("a transaction that is not hexadecimal"))?;
    match transaction_id(&bytes) {
        Ok(id) if id == *asked => Ok(bytes),
        Ok(_) => malformed("the bytes of another transaction than asked for"),
        Err(error) => Err(ChainError::Malformed(error.to_string())),
    }
}
