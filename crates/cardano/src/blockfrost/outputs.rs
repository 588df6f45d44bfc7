//! Parses the response of `/txs/{hash}/utxos`: the outputs of a transaction, and which of them are spent. The inputs
//! are skipped, because the transaction's bytes contain them.

use std::collections::BTreeSet;

use super::{
    ChainResult, json, malformed,
    stream::{self, Collect},
    unspent::{MAX_OUTPUTS, OutputJson},
};
use crate::{
    chain::{TokenLimit, TracedOutput, Utxo},
    hash::{TxHash, TxRef},
};

/// Maximum size in bytes of the JSON of all outputs of a transaction. A transaction of 16 kB holds fewer than 5,500
/// tokens, which take about 100 bytes of JSON each, or fewer than 500 outputs, which take about 400 bytes each.
const MAX_OUTPUTS_JSON: usize = 2 << 20;

/// Collects the outputs of a transaction while a response is read.
#[derive(Debug)]
pub struct TransactionOutputs {
    asked: TxHash,
    answered: bool,
    outputs: Vec<TracedOutput>,
    bytes: usize,
    /// References of the outputs to collect, and the limit on their tokens; `None` to collect all outputs.
    among: Option<(BTreeSet<TxRef>, TokenLimit)>,
}

impl TransactionOutputs {
    /// Creates a collector of all outputs of the transaction `asked`.
    #[must_use]
    pub const fn of(asked: TxHash) -> Self {
        Self { asked, answered: false, outputs: Vec::new(), bytes: 0, among: None }
    }

    /// Creates a collector of only the `named` outputs of the transaction `asked`, with a limit on their tokens
    /// ([`crate::chain::Chain::outputs_among`]).
    #[must_use]
    pub fn among(asked: TxHash, named: BTreeSet<TxRef>, most_tokens: usize) -> Self {
        Self { among: Some((named, TokenLimit::new(most_tokens))), ..Self::of(asked) }
    }
}

impl Collect for TransactionOutputs {
    type Out = Vec<TracedOutput>;
    const LIST: Option<&'static str> = Some("outputs");

    fn field(&mut self, name: &str, text: &str) -> ChainResult<()> {
        if name == "hash" {
            self.answered = text.parse() == Ok(self.asked);
            if !self.answered {
                return malformed("another transaction than asked for");
            }
        }
        Ok(())
    }

    fn element(&mut self, text: &[u8]) -> ChainResult<bool> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_OUTPUTS_JSON || self.outputs.len() >= MAX_OUTPUTS {
            return malformed("too many outputs of a transaction");
        }
        let output: OutputJson = json(text, "an output of a transaction")?;
        if output.address.is_none() {
            return malformed("an output without an address");
        }
        let (spent_by, collateral) = (output.consumed_by_tx, output.collateral.unwrap_or_default());
        let output = TracedOutput { utxo: output.utxo(self.asked, "")?, spent_by, not_on_ledger: collateral };
        match &mut self.among {
            None => self.outputs.push(output),
            Some((named, few)) if named.contains(&output.utxo.reference) => {
                let utxo = Utxo { inline_datum: None, ..output.utxo };
                self.outputs.push(few.truncate(TracedOutput { utxo, ..output }));
            }
            Some(_) => {}
        }
        Ok(true)
    }

    fn out(self) -> ChainResult<Vec<TracedOutput>> {
        if self.answered { Ok(self.outputs) } else { malformed("outputs of a transaction without its hash") }
    }
}

/// Parses a complete response and returns the transaction's outputs in order.
///
/// # Errors
/// [`ChainError`](crate::chain::ChainError) if the response does not have the documented shape or is about another
/// transaction.
pub fn outputs(body: &[u8], asked: &TxHash) -> ChainResult<Vec<TracedOutput>> {
    stream::whole(body, TransactionOutputs::of(*asked))
}
