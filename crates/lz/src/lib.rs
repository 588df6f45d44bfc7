//! `LZString.compressToUint8Array`, compatible with the crate `lz_str` and about ten times as fast. Each quote is
//! compressed once, and `lz_str` spends most of the time in a hash map of phrases.
//!
//! Phrases are nodes of a tree, numbered in the order of creation; the code of a phrase is its number. The
//! continuations of a phrase form a linked list of siblings, which is short in texts with few different characters.

use std::num::NonZeroU32;

/// Codes below the first phrase: a new 8-bit character, a new 16-bit character, the end.
const BASE: u32 = 3;
const NEW_8: u32 = 0;
const NEW_16: u32 = 1;
const END: u32 = 2;

/// A phrase: its parent's text plus one character.
struct Phrase {
    unit: u16,
    /// `true` for a single character that has not been written yet.
    new: bool,
    child: Option<NonZeroU32>,
    sibling: Option<NonZeroU32>,
}

/// Compression state. The first phrase is the empty one, whose children are the single characters.
struct Compressor {
    phrases: Vec<Phrase>,
    /// Phrases of single ASCII characters, indexed by the character, because each step looks one up.
    singles: [usize; 128],
    bits: Bits,
}

/// Index of the empty phrase.
const EMPTY: usize = 0;

/// Converts a link to an index; `None` for no link.
fn index(of: Option<NonZeroU32>) -> Option<usize> {
    of.and_then(|index| usize::try_from(index.get()).ok())
}

impl Compressor {
    fn new(units: usize) -> Self {
        let mut phrases = Vec::with_capacity(units.saturating_add(1));
        phrases.push(Phrase { unit: 0, new: false, child: None, sibling: None });
        Self { phrases, singles: [EMPTY; 128], bits: Bits::with_capacity(units) }
    }

    /// Returns the phrase that continues `phrase` with this character.
    fn after(&self, phrase: usize, unit: u16) -> Option<usize> {
        let mut next = index(self.phrases.get(phrase)?.child);
        while let Some(at) = next {
            let known = self.phrases.get(at)?;
            if known.unit == unit {
                return Some(at);
            }
            next = index(known.sibling);
        }
        None
    }

    fn single(&mut self, unit: u16) -> usize {
        match self.singles.get(usize::from(unit)).copied() {
            Some(EMPTY) => {
                let at = self.add(EMPTY, unit);
                if let Some(single) = self.singles.get_mut(usize::from(unit)) {
                    *single = at;
                }
                at
            }
            Some(at) => at,
            None => self.after(EMPTY, unit).unwrap_or_else(|| self.add(EMPTY, unit)),
        }
    }

    fn add(&mut self, phrase: usize, unit: u16) -> usize {
        let at = self.phrases.len();
        let link = u32::try_from(at).ok().and_then(NonZeroU32::new);
        let sibling = self.phrases.get_mut(phrase).and_then(|before| std::mem::replace(&mut before.child, link));
        self.phrases.push(Phrase { unit, new: phrase == EMPTY, child: None, sibling });
        at
    }

    fn write(&mut self, at: usize) {
        let Some(phrase) = self.phrases.get_mut(at) else { return };
        if std::mem::take(&mut phrase.new) {
            let (code, width) = if phrase.unit < 256 { (NEW_8, 8) } else { (NEW_16, 16) };
            self.bits.code(code);
            self.bits.push(phrase.unit.into(), width);
            self.bits.widen();
        } else {
            // The empty phrase has no code.
            self.bits.code(u32::try_from(at).unwrap_or_default().saturating_add(BASE).saturating_sub(1));
        }
        self.bits.widen();
    }
}

/// The bits written so far. Values are written from their least significant bit on; bytes are filled from their most
/// significant bit on.
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the incomplete byte, the newest lowest, and their number.
    rest: u64,
    held: u32,
    /// Width of a code, in bits.
    width: u32,
    /// Number of codes until the width grows.
    left: u64,
}

impl Bits {
    fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), rest: 0, held: 0, width: 2, left: 2 }
    }

    fn push(&mut self, value: u32, width: u32) {
        let turned = value.reverse_bits().checked_shr(32_u32.saturating_sub(width)).unwrap_or_default();
        self.rest = self.rest.checked_shl(width).unwrap_or_default() | u64::from(turned);
        self.held = self.held.saturating_add(width);
        while let Some(held) = self.held.checked_sub(8) {
            self.bytes.push(self.rest.checked_shr(held).unwrap_or_default().to_le_bytes()[0]);
            self.held = held;
        }
    }

    fn code(&mut self, code: u32) {
        self.push(code, self.width);
    }

    fn widen(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.left = 1_u64.checked_shl(self.width).unwrap_or(u64::MAX);
            self.width = self.width.saturating_add(1);
        }
    }

    /// Ends the output: adds one bit and pads to 16 bits.
    fn finish(mut self) -> Vec<u8> {
        self.push(0, 1);
        self.push(0, 8_u32.saturating_sub(self.held) % 8);
        if self.bytes.len() % 2 == 1 {
            self.bytes.push(0);
        }
        self.bytes
    }
}

/// Compresses a text like `LZString.compressToUint8Array`.
#[must_use]
pub fn compress(text: &str) -> Vec<u8> {
    let mut compressor = Compressor::new(text.len());
    let mut phrase = EMPTY;
    for unit in text.encode_utf16() {
        let single = compressor.single(unit);
        if phrase == EMPTY {
            phrase = single;
            continue;
        }
        phrase = compressor.after(phrase, unit).unwrap_or_else(|| {
            // The phrase's number precedes those of its continuations, whenever it is written.
            compressor.add(phrase, unit);
            compressor.write(phrase);
            single
        });
    }
    if phrase != EMPTY {
        compressor.write(phrase);
    }
    compressor.bits.code(END);
    compressor.bits.finish()
}

/// The README's example, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn output_equals_that_of_the_javascript_library(text in "[0-9a-f.]{0,900}", any in "\\PC{0,200}", few in "(a|ab|🦀|é){0,60}") {
            for text in [text, any, few] {
                prop_assert_eq!(compress(&text), lz_str::compress_to_uint8_array(&text), "{}", text);
            }
        }
    }
}
