//! `LZString.compressToUint8Array`, as `lz_str` has it, in a tenth of its time: each quote is compressed once, and a map of
//! phrases was what most of that went into.
//!
//! Phrases are nodes of a tree, numbered as they come up; a code is its node's number. What follows one is a chain of
//! siblings, few in texts of few characters.

/// Codes before the first phrase: a new character of 8 bits, one of 16, the end.
const BASE: usize = 3;
const NEW_8: usize = 0;
const NEW_16: usize = 1;
const END: usize = 2;

/// A phrase: the one before it and a character.
struct Phrase {
    unit: u16,
    child: Option<usize>,
    sibling: Option<usize>,
    /// A character alone that was not written yet.
    new: bool,
}

#[derive(Default)]
struct Compressor {
    phrases: Vec<Phrase>,
    /// The first of the single characters.
    first: Option<usize>,
    bits: Bits,
}

impl Compressor {
    /// The phrase that goes on with this character.
    fn after(&self, phrase: Option<usize>, unit: u16) -> Option<usize> {
        let mut next = match phrase {
            None => self.first,
            Some(at) => self.phrases.get(at)?.child,
        };
        while let Some(at) = next {
            let known = self.phrases.get(at)?;
            if known.unit == unit {
                return Some(at);
            }
            next = known.sibling;
        }
        None
    }

    fn add(&mut self, phrase: Option<usize>, unit: u16) -> usize {
        let at = self.phrases.len();
        let place = match phrase {
            None => Some(&mut self.first),
            Some(before) => self.phrases.get_mut(before).map(|before| &mut before.child),
        };
        let sibling = place.and_then(|place| place.replace(at));
        self.phrases.push(Phrase { unit, child: None, sibling, new: phrase.is_none() });
        at
    }

    fn write(&mut self, at: usize) {
        let Some(phrase) = self.phrases.get_mut(at) else { return };
        if std::mem::take(&mut phrase.new) {
            let (code, width) = if phrase.unit < 256 { (NEW_8, 8) } else { (NEW_16, 16) };
            self.bits.code(code);
            self.bits.push(usize::from(phrase.unit), width);
            self.bits.widen();
        } else {
            self.bits.code(at.saturating_add(BASE));
        }
        self.bits.widen();
    }
}

/// The bits written so far; values are written from their least bit on.
struct Bits {
    bytes: Vec<u8>,
    /// Of the last byte, those that are free.
    free: u32,
    /// Of a code.
    width: u32,
    /// Codes until they are wider.
    left: u64,
}

impl Default for Bits {
    fn default() -> Self {
        Self { bytes: Vec::new(), free: 0, width: 2, left: 2 }
    }
}

impl Bits {
    fn push(&mut self, value: usize, width: u32) {
        for place in 0..width {
            self.free = self.free.checked_sub(1).unwrap_or_else(|| {
                self.bytes.push(0);
                7
            });
            if let Some(last) = self.bytes.last_mut() {
                let bit = value.checked_shr(place).is_some_and(|rest| rest & 1 == 1);
                *last |= u8::from(bit).checked_shl(self.free).unwrap_or_default();
            }
        }
    }

    fn code(&mut self, code: usize) {
        self.push(code, self.width);
    }

    fn widen(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.left = 1_u64.checked_shl(self.width).unwrap_or(u64::MAX);
            self.width = self.width.saturating_add(1);
        }
    }

    /// Filled up to 16 bits, with one more than there is.
    fn finish(mut self) -> Vec<u8> {
        self.push(0, 1);
        if self.bytes.len() % 2 == 1 {
            self.bytes.push(0);
        }
        self.bytes
    }
}

/// A text, compressed.
pub(super) fn compress(text: &str) -> Vec<u8> {
    let mut compressor = Compressor::default();
    let mut phrase: Option<usize> = None;
    for unit in text.encode_utf16() {
        let single = compressor.after(None, unit).unwrap_or_else(|| compressor.add(None, unit));
        let Some(before) = phrase else {
            phrase = Some(single);
            continue;
        };
        phrase = compressor.after(Some(before), unit).or_else(|| {
            // Its number comes before those of what follows, whenever it is written.
            compressor.add(Some(before), unit);
            compressor.write(before);
            Some(single)
        });
    }
    if let Some(last) = phrase {
        compressor.write(last);
    }
    compressor.bits.code(END);
    compressor.bits.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_the_library_makes(text in "[0-9a-f.]{0,900}", any in "\\PC{0,200}", few in "(a|ab|🦀|é){0,60}") {
            for text in [text, any, few] {
                prop_assert_eq!(compress(&text), lz_str::compress_to_uint8_array(&text), "{}", text);
            }
        }
    }
}
