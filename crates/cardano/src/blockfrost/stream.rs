//! Reads responses that contain one long list while they arrive, in bounded memory.
//!
//! Strangers determine how long some responses are, because Blockfrost lists every token of every output: a transaction
//! of 16 kB can reference 450 outputs of 1,600 tokens each, which is 75 MB of JSON. The reader holds one element of the
//! list at a time and skips everything else.

use actson::{JsonEvent, JsonParser, feeder::JsonFeeder, options::JsonParserOptionsBuilder};

use super::{ChainResult, malformed};
use crate::chain::ChainError;

/// Maximum size of one JSON string or number, in bytes. The longest is a datum in hex, which has less than 33 kB.
const MAX_TOKEN: usize = 128 << 10;
/// Maximum size of one element of the list, in bytes. An output of 1,600 tokens (about 95 bytes of JSON each) with a
/// datum has less than 200 kB.
const MAX_ELEMENT: usize = 512 << 10;
/// Maximum nesting depth of a response's JSON, above that of every documented response.
const MAX_DEPTH: usize = 16;

/// Consumes the elements of a response's list, one by one.
pub trait Collect {
    /// Result that is collected from the whole list.
    type Out;
    /// Name of the field that contains the list; `None` if the response itself is the list.
    const LIST: Option<&'static str>;

    /// Consumes a string field of the response that lies outside the list.
    ///
    /// # Errors
    /// [`ChainError`](crate::chain::ChainError) if the value is not as documented.
    fn field(&mut self, _name: &str, _text: &str) -> ChainResult<()> {
        Ok(())
    }
    /// Consumes the JSON of one element of the list. Returns `false` if no more elements are needed.
    ///
    /// # Errors
    /// [`ChainError`](crate::chain::ChainError) if the element is not as documented.
    fn element(&mut self, json: &[u8]) -> ChainResult<bool>;
    /// Returns the collected result. Called after the last element.
    ///
    /// # Errors
    /// [`ChainError`](crate::chain::ChainError) if a required part of the response is missing.
    fn out(self) -> ChainResult<Self::Out>;
}

/// Parses a response chunk by chunk, in bounded memory.
pub struct AnswerReader<C> {
    collected: C,
    parser: JsonParser<Piece>,
    /// Total size in bytes of the chunks before the current chunk.
    before: usize,
    /// Offset in the response at which the last token ended.
    token_end: usize,
    depth: usize,
    /// Name of the current field at the outermost level.
    field: String,
    list: List,
    /// Bytes of the current element from earlier chunks, and the offset in the response at which these bytes end.
    /// `None` between elements.
    element: Option<(Vec<u8>, usize)>,
    ended: Option<ChainResult<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Awaited,
    Open,
    Closed,
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

impl<C: Collect> AnswerReader<C> {
    /// Nesting depth of the list's elements: 2 if the list is in a field, 1 if the response itself is the list.
    const INSIDE: usize = if C::LIST.is_some() { 2 } else { 1 };

    /// Creates a reader that passes the elements of the list to `collect`.
    pub fn new(collect: C) -> Self {
        let options = JsonParserOptionsBuilder::default().with_max_depth(MAX_DEPTH).build();
        Self {
            collected: collect,
            parser: JsonParser::new_with_options(Piece::default(), options),
            before: 0,
            token_end: 0,
            depth: 0,
            field: String::new(),
            list: List::Awaited,
            element: None,
            ended: None,
        }
    }

    /// Parses the next chunk of the response. Returns `false` if no more chunks are needed. Errors are returned by
    /// [`AnswerReader::finish`].
    pub fn push(&mut self, piece: Vec<u8>) -> bool {
        if self.ended.is_none() {
            self.before = self.before.saturating_add(self.parser.feeder.bytes.len());
            self.parser.feeder = Piece { bytes: piece, at: 0, last: false };
            self.ended = match self.read() {
                Ok(true) => None,
                Ok(false) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            };
        }
        self.ended.is_none()
    }

    /// Ends the response and returns the collected result.
    ///
    /// # Errors
    /// [`ChainError`](crate::chain::ChainError) if the response does not have the documented shape or is truncated.
    pub fn finish(mut self) -> ChainResult<C::Out> {
        match self.ended.take() {
            Some(Err(error)) => return Err(error),
            Some(Ok(())) => {}
            None => {
                self.parser.feeder.last = true;
                self.read()?;
                if self.list != List::Closed {
                    return malformed("an answer without its list");
                }
            }
        }
        self.collected.out()
    }

    /// Returns the number of bytes of the response that are in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.element.as_ref().map_or(0, |(text, _)| text.capacity()).saturating_add(self.parser.feeder.bytes.capacity())
    }

    /// Parses the current chunk. Returns `false` if no more chunks are needed.
    fn read(&mut self) -> ChainResult<bool> {
        loop {
            let event = self.parser.next_event().or_else(|error| malformed(&format!("an answer's JSON: {error}")))?;
            match event {
                None => return Ok(true),
                Some(JsonEvent::NeedMoreInput) => break,
                Some(event) => {
                    if !self.take(event)? {
                        return Ok(false);
                    }
                }
            }
            self.token_end = self.parser.parsed_bytes();
        }
        if self.parser.parsed_bytes().saturating_sub(self.token_end) > MAX_TOKEN {
            return malformed("an answer with a text that is too long");
        }
        self.keep()?;
        Ok(true)
    }

    /// Handles one event of the JSON parser. Returns `false` to stop parsing.
    fn take(&mut self, event: JsonEvent) -> ChainResult<bool> {
        match event {
            JsonEvent::StartObject | JsonEvent::StartArray => self.begin(event)?,
            JsonEvent::EndObject | JsonEvent::EndArray => {
                self.depth = self.depth.saturating_sub(1);
                if self.list == List::Open && self.depth < Self::INSIDE {
                    self.list = List::Closed;
                } else if self.list == List::Open && self.depth == Self::INSIDE {
                    return self.end_element();
                }
            }
            JsonEvent::FieldName if self.depth == 1 => {
                self.field.clear();
                self.field.push_str(self.parser.current_str().unwrap_or_default());
            }
            JsonEvent::ValueString if self.depth == 1 && self.list != List::Open => {
                self.collected.field(&self.field, self.parser.current_str().unwrap_or_default())?;
            }
            JsonEvent::FieldName => {}
            _ if self.list == List::Open && self.depth == Self::INSIDE => {
                return malformed("a list of other things than documented");
            }
            _ => {}
        }
        Ok(true)
    }

    fn begin(&mut self, event: JsonEvent) -> ChainResult<()> {
        // The bracket is the last byte that was read.
        let place = self.parser.parsed_bytes().saturating_sub(1);
        let is_list = event == JsonEvent::StartArray
            && self.depth.saturating_add(1) == Self::INSIDE
            && C::LIST.is_none_or(|name| name == self.field);
        if is_list {
            if self.list != List::Awaited {
                return malformed("an answer with its list twice");
            }
            self.list = List::Open;
        } else if self.list == List::Open && self.depth == Self::INSIDE {
            self.element = Some((Vec::new(), place));
        }
        self.depth = self.depth.saturating_add(1);
        Ok(())
    }

    fn end_element(&mut self) -> ChainResult<bool> {
        self.keep()?;
        match self.element.take() {
            Some((text, _)) => self.collected.element(&text),
            None => Ok(true),
        }
    }

    /// Saves the bytes of the current element that were parsed since the last call, because their chunk will be
    /// dropped.
    fn keep(&mut self) -> ChainResult<()> {
        let Some((text, kept)) = &mut self.element else { return Ok(()) };
        let read = self.parser.parsed_bytes();
        let range = kept.saturating_sub(self.before)..read.saturating_sub(self.before);
        text.extend_from_slice(self.parser.feeder.bytes.get(range).unwrap_or_default());
        *kept = read;
        if text.len() > MAX_ELEMENT { malformed("an answer with an element that is too large") } else { Ok(()) }
    }
}

/// Parses a complete response at once.
pub(super) fn whole<C: Collect>(body: &[u8], collect: C) -> Result<C::Out, ChainError> {
    let mut reader = AnswerReader::new(collect);
    reader.push(body.to_vec());
    reader.finish()
}
