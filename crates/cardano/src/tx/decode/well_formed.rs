//! Checks that bytes are CBOR of the kind that the ledger accepts, without duplicate keys or over-long lengths.
//!
//! The check is iterative, so nesting cannot exhaust the stack.

use std::collections::BTreeSet;

use super::cbor::{CborError, ItemHead, MAX_CBOR_DEPTH, Reader};

/// Checks that the bytes are exactly one well-formed item, which a [`Reader`] can then read.
pub(super) fn check(bytes: &[u8]) -> Result<(), CborError> {
    let mut reader = Reader::new(bytes);
    walk(&mut reader)?;
    if reader.at == bytes.len() { Ok(()) } else { Err(CborError::Trailing) }
}

impl<'a> Reader<'a> {
    /// Skips one item of any kind and returns its bytes.
    pub(super) fn skip(&mut self) -> Result<&'a [u8], CborError> {
        let start = self.at;
        walk(self)?;
        self.bytes.get(start..self.at).ok_or(CborError::Truncated)
    }
}

/// An array, map, tag or chunked string whose items are being read.
struct OpenContainer<'a> {
    start: usize,
    kind: ContainerKind<'a>,
    /// Number of unread items, or of unread pairs of a map; `None` if the container has indefinite length.
    left: Option<u64>,
}

enum ContainerKind<'a> {
    Array,
    Tag,
    Map {
        keys: BTreeSet<&'a [u8]>,
        /// `true` if a key of the map has been read and its value comes next.
        value_due: bool,
    },
    Chunks {
        text: bool,
    },
}

/// Checks one item and everything in it, skips it, and returns its bytes.
fn walk<'a>(reader: &mut Reader<'a>) -> Result<(), CborError> {
    let mut stack: Vec<OpenContainer<'a>> = Vec::new();
    loop {
        let start = reader.at;
        let head = reader.head()?;
        if let Some(OpenContainer { kind: ContainerKind::Chunks { text }, .. }) = stack.last()
            && !matches!(
                (head, text),
                (ItemHead::Break, _) | (ItemHead::Bytes(Some(_)), false) | (ItemHead::Text(Some(_)), true)
            )
        {
            return Err(CborError::Structure);
        }
        let ended = match head {
            ItemHead::Break => Some(end_indefinite(&mut stack)?),
            ItemHead::Bytes(Some(length)) => {
                reader.take(length)?;
                Some(start)
            }
            ItemHead::Text(Some(length)) => {
                str::from_utf8(reader.take(length)?).map_err(|_| CborError::NotUtf8)?;
                Some(start)
            }
            ItemHead::Uint(_)
            | ItemHead::Nint(_)
            | ItemHead::Bool(_)
            | ItemHead::Null
            | ItemHead::Array(Some(0))
            | ItemHead::Map(Some(0)) => Some(start),
            ItemHead::Bytes(None) => push(&mut stack, start, ContainerKind::Chunks { text: false }, None)?,
            ItemHead::Text(None) => push(&mut stack, start, ContainerKind::Chunks { text: true }, None)?,
            ItemHead::Array(left) => push(&mut stack, start, ContainerKind::Array, left)?,
            ItemHead::Tag(_) => push(&mut stack, start, ContainerKind::Tag, Some(1))?,
            ItemHead::Map(left) => {
                push(&mut stack, start, ContainerKind::Map { keys: BTreeSet::new(), value_due: false }, left)?
            }
        };
        if let Some(start) = ended
            && close(&mut stack, reader, start)?
        {
            return Ok(());
        }
    }
}

fn push<'a>(
    stack: &mut Vec<OpenContainer<'a>>,
    start: usize,
    kind: ContainerKind<'a>,
    left: Option<u64>,
) -> Result<Option<usize>, CborError> {
    if stack.len() >= MAX_CBOR_DEPTH {
        return Err(CborError::TooDeep);
    }
    stack.push(OpenContainer { start, kind, left });
    Ok(None)
}

/// Ends the innermost container at a break. Returns the position at which the container began.
fn end_indefinite(stack: &mut Vec<OpenContainer<'_>>) -> Result<usize, CborError> {
    match stack.pop() {
        Some(OpenContainer { kind: ContainerKind::Map { value_due: true, .. } | ContainerKind::Tag, .. }) => {
            Err(CborError::Structure)
        }
        Some(OpenContainer { start, left: None, .. }) => Ok(start),
        _ => Err(CborError::Structure),
    }
}

/// Counts a finished item, which began at the position `start`, as an item of the innermost open container. Returns
/// whether the outermost item has ended.
fn close<'a>(stack: &mut Vec<OpenContainer<'a>>, reader: &Reader<'a>, mut start: usize) -> Result<bool, CborError> {
    loop {
        let Some(frame) = stack.last_mut() else { return Ok(true) };
        if let ContainerKind::Map { keys, value_due } = &mut frame.kind {
            *value_due = !*value_due;
            if *value_due {
                let key = reader.bytes.get(start..reader.at).ok_or(CborError::Truncated)?;
                if !keys.insert(key) {
                    return Err(CborError::DuplicateKey);
                }
                return Ok(false);
            }
        }
        match &mut frame.left {
            None => return Ok(false),
            Some(left) => {
                *left = left.saturating_sub(1);
                if *left > 0 {
                    return Ok(false);
                }
                start = frame.start;
                stack.pop();
            }
        }
    }
}
