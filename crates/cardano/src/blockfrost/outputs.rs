//! `/txs/{hash}/utxos`: what a transaction made, and what spent it, read while it arrives.
//!
//! Blockfrost lists the inputs first, each with all the tokens and the datum that it holds, and anyone can make a
//! transaction that names some 450 outputs of 1,600 tokens: 75 MB of them, from 16 kB on the chain. They are passed over;
//! only the outputs' own text is kept, which the size of one transaction bounds.

use actson::{JsonEvent, JsonParser, feeder::JsonFeeder, options::JsonParserOptionsBuilder};

use super::{
    Answer, json, malformed,
    unspent::{MAX_OUTPUTS, Output},
};
use crate::{
    chain::{ChainError, TracedOutput},
    hash::TxHash,
};

/// Bytes of the outputs' JSON that are kept: 16 kB of transaction hold fewer than 5,500 tokens (3 bytes each at least),
/// about 100 bytes of JSON each, or fewer than 500 outputs of about 400 bytes.
const MAX_OUTPUTS_JSON: usize = 2 << 20;
/// Bytes of one text or number: a datum in hexadecimal is the longest, under 33 kB.
const MAX_TOKEN: usize = 128 << 10;
/// How deep the documented shape nests, with room.
const MAX_DEPTH: usize = 16;

/// Reads an answer piece by piece, in bounded memory.
pub struct OutputsReader {
    asked: TxHash,
    parser: JsonParser<Piece>,
    /// Bytes of the pieces before this one.
    before: usize,
    /// Where in the answer the last token ended.
    token_end: usize,
    depth: usize,
    field: Field,
    hash: Option<TxHash>,
    outputs: OutputsText,
    failed: Option<ChainError>,
}

/// The outputs' own text, from its bracket to its bracket.
enum OutputsText {
    Awaited,
    /// What of it was there up to this place in the answer.
    Arriving(Vec<u8>, usize),
    Whole(Vec<u8>),
}

/// Which field of the answer is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Hash,
    Outputs,
    Other,
}

#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    at: usize,
    last: bool,
}

impl JsonFeeder for Piece {
    fn has_input(&self) -> bool {
        self.at < self.bytes.len()
    }

    fn is_done(&self) -> bool {
        self.last && !self.has_input()
    }

    fn next_input(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at = self.at.saturating_add(1);
        Some(byte)
    }
}

impl OutputsReader {
    /// A reader of the answer about this transaction.
    #[must_use]
    pub fn new(asked: &TxHash) -> Self {
        let options = JsonParserOptionsBuilder::default().with_max_depth(MAX_DEPTH).build();
        Self {
            asked: *asked,
            parser: JsonParser::new_with_options(Piece::default(), options),
            before: 0,
            token_end: 0,
            depth: 0,
            field: Field::Other,
            hash: None,
            outputs: OutputsText::Awaited,
            failed: None,
        }
    }

    /// Takes the next piece; whether further ones are wanted. What was wrong [`OutputsReader::finish`] says.
    pub fn push(&mut self, piece: Vec<u8>) -> bool {
        if self.failed.is_none() {
            self.before = self.before.saturating_add(self.parser.feeder.bytes.len());
            self.parser.feeder = Piece { bytes: piece, at: 0, last: false };
            self.failed = self.read().err();
        }
        self.failed.is_none()
    }

    /// The outputs, in order.
    ///
    /// # Errors
    /// Not of the documented shape, cut short, or of another transaction than asked for.
    pub fn finish(mut self) -> Answer<Vec<TracedOutput>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.parser.feeder.last = true;
        self.read()?;
        match (self.outputs, self.hash) {
            (OutputsText::Whole(text), Some(hash)) if hash == self.asked => made(&text, hash),
            (_, Some(_)) => malformed("another transaction than asked for, or no outputs"),
            (_, None) => malformed("transaction outputs: no hash"),
        }
    }

    /// Bytes of the answer that are held now.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let text = match &self.outputs {
            OutputsText::Awaited => 0,
            OutputsText::Arriving(text, _) | OutputsText::Whole(text) => text.capacity(),
        };
        text.saturating_add(self.parser.feeder.bytes.capacity())
    }

    fn read(&mut self) -> Answer<()> {
        loop {
            let event =
                self.parser.next_event().or_else(|error| malformed(&format!("transaction outputs: {error}")))?;
            match event {
                None => return Ok(()),
                Some(JsonEvent::NeedMoreInput) => break,
                Some(event) => self.take(event)?,
            }
            self.token_end = self.parser.parsed_bytes();
        }
        if self.parser.parsed_bytes().saturating_sub(self.token_end) > MAX_TOKEN {
            return malformed("transaction outputs: a text that is too long");
        }
        self.keep()
    }

    fn take(&mut self, event: JsonEvent) -> Answer<()> {
        const FIELDS: usize = 1;
        match event {
            JsonEvent::StartObject | JsonEvent::StartArray => {
                let begins = event == JsonEvent::StartArray && self.depth == FIELDS && self.field == Field::Outputs;
                if begins {
                    self.begin()?;
                }
                self.depth = self.depth.saturating_add(1);
            }
            JsonEvent::EndObject | JsonEvent::EndArray => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == FIELDS && self.field == Field::Outputs {
                    self.end()?;
                }
            }
            JsonEvent::FieldName if self.depth == FIELDS => {
                self.field = match self.parser.current_str() {
                    Ok("hash") => Field::Hash,
                    Ok("outputs") => Field::Outputs,
                    _ => Field::Other,
                };
            }
            JsonEvent::ValueString if self.depth == FIELDS && self.field == Field::Hash => {
                let text = self.parser.current_str().unwrap_or_default();
                self.hash = Some(text.parse().or_else(|_| malformed("transaction outputs: a hash"))?);
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self) -> Answer<()> {
        let OutputsText::Awaited = self.outputs else { return malformed("outputs of a transaction twice") };
        // The bracket was the last byte that was read.
        self.outputs = OutputsText::Arriving(Vec::new(), self.parser.parsed_bytes().saturating_sub(1));
        Ok(())
    }

    fn end(&mut self) -> Answer<()> {
        self.keep()?;
        if let OutputsText::Arriving(text, _) = &mut self.outputs {
            self.outputs = OutputsText::Whole(std::mem::take(text));
        }
        Ok(())
    }

    /// Keeps what was read of the outputs since the last time.
    fn keep(&mut self) -> Answer<()> {
        let OutputsText::Arriving(text, kept) = &mut self.outputs else { return Ok(()) };
        let read = self.parser.parsed_bytes();
        let range = kept.saturating_sub(self.before)..read.saturating_sub(self.before);
        text.extend_from_slice(self.parser.feeder.bytes.get(range).unwrap_or_default());
        *kept = read;
        if text.len() > MAX_OUTPUTS_JSON { malformed("too large outputs of a transaction") } else { Ok(()) }
    }
}

/// `/txs/{hash}/utxos`, whole: the outputs.
///
/// # Errors
/// As [`OutputsReader::finish`].
pub fn outputs(body: &[u8], asked: &TxHash) -> Answer<Vec<TracedOutput>> {
    let mut reader = OutputsReader::new(asked);
    reader.push(body.to_vec());
    reader.finish()
}

fn made(text: &[u8], tx: TxHash) -> Answer<Vec<TracedOutput>> {
    let outputs: Vec<Output> = json(text, "transaction outputs")?;
    if outputs.len() > MAX_OUTPUTS {
        return malformed("too many outputs of a transaction");
    }
    let traced = |output: Output| {
        if output.address.is_none() {
            return malformed("an output without an address");
        }
        let (spent_by, collateral) = (output.consumed_by_tx, output.collateral);
        Ok(TracedOutput { utxo: output.utxo(tx, "")?, spent_by, collateral })
    };
    outputs.into_iter().map(traced).collect()
}
