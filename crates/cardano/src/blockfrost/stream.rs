//! Answers that hold one long list, read while they arrive.
//!
//! Strangers decide how long some answers are: Blockfrost shows every token of every output. One transaction can name
//! 450 outputs of 1,600 tokens each: 75 MB of JSON from 16 kB on the chain. Here one element of the list at a time is
//! in memory; what is beside the list is passed over.

use actson::{JsonEvent, JsonParser, feeder::JsonFeeder, options::JsonParserOptionsBuilder};

use super::{ChainResult, malformed};
use crate::chain::ChainError;

/// Bytes of one text or number: a datum in hexadecimal is the longest, under 33 kB.
const MAX_TOKEN: usize = 128 << 10;
/// Bytes of one element: an output of 1,600 tokens, each about 95 bytes of JSON, and of a datum is under 200 kB.
const MAX_ELEMENT: usize = 512 << 10;
/// How deep the documented shapes nest, with room.
const MAX_DEPTH: usize = 16;

/// What is done with the elements of an answer's list.
pub trait Collect {
    /// What is made of them.
    type Out;
    /// The field of the answer that is the list; `None` where the answer is.
    const LIST: Option<&'static str>;

    /// Takes a text beside the list.
    ///
    /// # Errors
    /// Not what is documented.
    fn field(&mut self, _name: &str, _text: &str) -> ChainResult<()> {
        Ok(())
    }
    /// Takes an element, as JSON; whether further ones are wanted.
    ///
    /// # Errors
    /// Not what is documented.
    fn element(&mut self, json: &[u8]) -> ChainResult<bool>;
    /// What was made of all.
    ///
    /// # Errors
    /// Something is missing.
    fn out(self) -> ChainResult<Self::Out>;
}

/// Reads an answer piece by piece, in bounded memory.
pub struct AnswerReader<C> {
    collected: C,
    parser: JsonParser<Piece>,
    /// Bytes of the pieces before this one.
    before: usize,
    /// Where in the answer the last token ended.
    token_end: usize,
    depth: usize,
    /// The name of the field that is being read, on the outermost level.
    field: String,
    list: List,
    /// What came before in this element, and up to where in the answer.
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
    /// The depth inside of the list.
    const INSIDE: usize = if C::LIST.is_some() { 2 } else { 1 };

    /// A reader that gives the elements to this.
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

    /// Takes the next piece; whether further ones are wanted. What was wrong [`AnswerReader::finish`] says.
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

    /// What was made of the answer.
    ///
    /// # Errors
    /// Not of the documented shape, or cut short.
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

    /// Bytes of the answer that are held now.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.element.as_ref().map_or(0, |(text, _)| text.capacity()).saturating_add(self.parser.feeder.bytes.capacity())
    }

    /// Reads this piece; whether further ones are wanted.
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

    /// Takes the next event; whether further ones are wanted.
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
        // The bracket was the last byte that was read.
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

    /// Keeps what was read of the element since the last time.
    fn keep(&mut self) -> ChainResult<()> {
        let Some((text, kept)) = &mut self.element else { return Ok(()) };
        let read = self.parser.parsed_bytes();
        let range = kept.saturating_sub(self.before)..read.saturating_sub(self.before);
        text.extend_from_slice(self.parser.feeder.bytes.get(range).unwrap_or_default());
        *kept = read;
        if text.len() > MAX_ELEMENT { malformed("an answer with an element that is too large") } else { Ok(()) }
    }
}

/// Reads a whole answer.
pub(super) fn whole<C: Collect>(body: &[u8], collect: C) -> Result<C::Out, ChainError> {
    let mut reader = AnswerReader::new(collect);
    reader.push(body.to_vec());
    reader.finish()
}
