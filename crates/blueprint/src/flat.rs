//! Applies parameters to a Plutus program in its binary form, "flat" (Plutus Core specification, appendix C).
//!
//! Applying a parameter puts four bits in front of the program. Everything after them moves to a new bit offset and
//! must be copied term by term, because byte strings are aligned to whole bytes.

/// The bits are not a valid Plutus program.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

type Result<T> = core::result::Result<T, Malformed>;

/// Four-bit tag of a term that applies a function.
const APPLY: u8 = 3;
const CONSTANT: u8 = 4;
/// Encoding of the constant type "data": a one bit, the type's tag, and a zero bit that ends the list of tags.
const DATA: u8 = 0b11_0000;
/// Maximum number of tags in a constant's type. The type "list of pairs of integers" has seven.
const MAX_TYPE: usize = 64;
/// Maximum number of bytes in one chunk of a byte string.
const MAX_CHUNK: usize = 255;

/// Applies a program to arguments, each given as the CBOR of a Plutus value.
pub fn apply(program: &[u8], arguments: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut copy = Copy { input: Input { bytes: program, bit: 0 }, output: Output::default() };
    copy.version()?;
    for _ in arguments {
        copy.output.bits(4, APPLY);
    }
    copy.term()?;
    copy.input.skip_filler()?;
    if !copy.input.bytes.is_empty() {
        return Err(Malformed);
    }
    let mut output = copy.output;
    for argument in arguments {
        output.bits(4, CONSTANT);
        output.bits(6, DATA);
        output.filler();
        for piece in argument.chunks(MAX_CHUNK) {
            output.bytes.push(u8::try_from(piece.len()).map_err(|_| Malformed)?);
            output.bytes.extend(piece);
        }
        output.bytes.push(0);
    }
    output.filler();
    Ok(output.bytes)
}

/// A cursor over bits, most significant first.
struct Input<'a> {
    bytes: &'a [u8],
    /// Number of bits of the current byte that have already been read, below eight.
    bit: u8,
}

impl Input<'_> {
    fn bit(&mut self) -> Result<bool> {
        let (first, rest) = self.bytes.split_first().ok_or(Malformed)?;
        let bit = first.wrapping_shl(self.bit.into()) & 0x80 != 0;
        if self.bit == 7 {
            (self.bytes, self.bit) = (rest, 0);
        } else {
            self.bit = self.bit.wrapping_add(1);
        }
        Ok(bit)
    }

    /// Skips the padding before a byte string: zero bits and a final one bit, which must end at a byte boundary.
    fn skip_filler(&mut self) -> Result<()> {
        while !self.bit()? {}
        if self.bit == 0 { Ok(()) } else { Err(Malformed) }
    }
}

/// Bits that have been written, most significant first.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// Number of bits of the last byte that are still free, below eight.
    free: u8,
}

impl Output {
    fn bit(&mut self, bit: bool) {
        if self.free == 0 {
            self.bytes.push(0);
        }
        self.free = self.free.wrapping_sub(1) & 7;
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit).wrapping_shl(self.free.into());
        }
    }

    /// Writes the lowest `count` bits of the byte `bits`.
    fn bits(&mut self, count: u8, bits: u8) {
        for place in (0..count).rev() {
            self.bit(bits.wrapping_shr(place.into()) & 1 != 0);
        }
    }

    fn filler(&mut self) {
        while self.free != 1 {
            self.bit(false);
        }
        self.bit(true);
    }
}

/// The state of copying a program to another bit offset.
struct Copy<'a> {
    input: Input<'a>,
    output: Output,
}

/// A part of a term that remains to be copied.
enum Remaining {
    Term,
    /// A list of terms, each preceded by a one bit. A zero bit ends the list.
    Terms,
}

impl Copy<'_> {
    fn bit(&mut self) -> Result<bool> {
        let bit = self.input.bit()?;
        self.output.bit(bit);
        Ok(bit)
    }

    fn bits(&mut self, count: u8) -> Result<u8> {
        (0..count).try_fold(0_u8, |bits, _| Ok(bits.wrapping_shl(1) | u8::from(self.bit()?)))
    }

    /// Copies an integer: groups of seven bits, each preceded by a bit that says whether more follow. Signed integers
    /// have the same form.
    fn number(&mut self) -> Result<()> {
        loop {
            let more = self.bit()?;
            self.bits(7)?;
            if !more {
                return Ok(());
            }
        }
    }

    fn version(&mut self) -> Result<()> {
        (0..3).try_for_each(|_| self.number())
    }

    fn term(&mut self) -> Result<()> {
        let mut left = vec![Remaining::Term];
        while let Some(next) = left.pop() {
            match next {
                Remaining::Terms => {
                    if self.bit()? {
                        left.extend([Remaining::Terms, Remaining::Term]);
                    }
                }
                Remaining::Term => match self.bits(4)? {
                    // A variable, by its number of binders.
                    0 => self.number()?,
                    // Delay, lambda, force.
                    1 | 2 | 5 => left.push(Remaining::Term),
                    APPLY => left.extend([Remaining::Term, Remaining::Term]),
                    CONSTANT => self.constant()?,
                    // An error.
                    6 => {}
                    // A builtin function.
                    7 => drop(self.bits(7)?),
                    // A constructor with its fields, and below it a case with its branches.
                    8 => {
                        self.number()?;
                        left.push(Remaining::Terms);
                    }
                    9 => left.extend([Remaining::Terms, Remaining::Term]),
                    _ => return Err(Malformed),
                },
            }
        }
        Ok(())
    }

    fn constant(&mut self) -> Result<()> {
        let mut tags = Vec::new();
        while self.bit()? {
            if tags.len() == MAX_TYPE {
                return Err(Malformed);
            }
            tags.push(self.bits(4)?);
        }
        if self.value(&tags)?.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    /// Copies the value of a constant. `tags` begins with the encoding of the value's type; returns the tags that
    /// follow that encoding.
    fn value<'t>(&mut self, tags: &'t [u8]) -> Result<&'t [u8]> {
        match tags {
            [0, rest @ ..] => self.number().map(|()| rest),
            // Bytes, string, data.
            [1 | 2 | 8, rest @ ..] => self.byte_string().map(|()| rest),
            // Unit.
            [3, rest @ ..] => Ok(rest),
            // Boolean.
            [4, rest @ ..] => self.bit().map(|_| rest),
            // A list (5) applied (7) to a type, and a pair (6) applied to two.
            [7, 5, element @ ..] => {
                while self.bit()? {
                    self.value(element)?;
                }
                after(element)
            }
            [7, 7, 6, first @ ..] => {
                let second = self.value(first)?;
                self.value(second)
            }
            _ => Err(Malformed),
        }
    }

    /// Copies a byte string: chunks aligned to whole bytes, each preceded by its length. An empty chunk ends the
    /// string.
    fn byte_string(&mut self) -> Result<()> {
        self.input.skip_filler()?;
        self.output.filler();
        loop {
            let (length, rest) = self.input.bytes.split_first().ok_or(Malformed)?;
            let (piece, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Malformed)?;
            self.output.bytes.push(*length);
            self.output.bytes.extend(piece);
            self.input.bytes = rest;
            if *length == 0 {
                return Ok(());
            }
        }
    }
}

/// Returns the tags that remain after the first type in `tags`.
fn after(tags: &[u8]) -> Result<&[u8]> {
    match tags {
        [0..=4 | 8, rest @ ..] => Ok(rest),
        [7, 5, element @ ..] => after(element),
        [7, 7, 6, first @ ..] => after(after(first)?),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use pallas_codec::minicbor::{self, bytes::ByteVec};
    use uplc::{
        ast::{DeBruijn, Program},
        parser,
        tx::apply_params_to_script,
    };

    use super::*;

    /// Textual Plutus terms of every kind, with constants of every type at every bit offset.
    const TERMS: [&str; 12] = [
        "(lam a (delay (force a)))",
        "(error)",
        "(lam a [(builtin verifyEd25519Signature) a a])",
        "(constr 300 (con unit ()) (error))",
        "(case (constr 0 ) (con bool True) (con bool False))",
        "(con integer -123456789012345678901234567890)",
        "[(con bytestring #) (con bytestring #0102)]",
        "(con string \"text\")",
        "(con data (Constr 1 [I 5, B #00, List [], Map [(I 1, I 2)]]))",
        "(con (list (pair integer bytestring)) [(1, #aa), (2, #)])",
        "(con (list (list bool)) [[], [True, False]])",
        "(con (pair (list data) unit) ([], ()))",
    ];

    fn flat(text: &str) -> Vec<u8> {
        let program = parser::program(&format!("(program 1.1.0 {text})")).unwrap();
        Program::<DeBruijn>::try_from(program).unwrap().to_flat().unwrap()
    }

    /// Applies the arguments with the crate that the Plutus evaluator uses, for comparison.
    fn applied_there(program: &[u8], arguments: &[Vec<u8>]) -> Vec<u8> {
        let code = minicbor::to_vec(ByteVec::from(program.to_vec())).unwrap();
        let mut list = vec![0x80 | u8::try_from(arguments.len()).unwrap()];
        list.extend(arguments.concat());
        let applied = apply_params_to_script(&list, &code).unwrap();
        minicbor::decode::<ByteVec>(&applied).unwrap().to_vec()
    }

    fn arguments(count: usize) -> Vec<Vec<u8>> {
        let long = minicbor::to_vec(ByteVec::from(vec![7; 60])).unwrap();
        let list = [&[0x9f][..], &long.repeat(9), &[0xff]].concat();
        [vec![0x05], list, vec![0x40], vec![0xd8, 0x79, 0x80]].into_iter().cycle().take(count).collect()
    }

    #[test]
    fn programs_are_applied_as_the_evaluators_crate_applies_them() {
        for text in TERMS {
            for shift in ["", "(delay ", "(delay (delay (delay "] {
                let program = flat(&format!("{shift}{text}{}", ")".repeat(shift.matches('(').count())));
                for count in 0..5 {
                    let arguments = arguments(count);
                    assert_eq!(apply(&program, &arguments), Ok(applied_there(&program, &arguments)), "{text}, {count}");
                }
            }
        }
    }

    #[test]
    fn the_contract_is_applied_as_the_evaluators_crate_applies_it() {
        let blueprint = include_str!("../../../contracts/plutus.json");
        let blueprint: serde_json::Value = serde_json::from_str(blueprint).unwrap();
        for validator in blueprint["validators"].as_array().unwrap() {
            let code = hex::decode(validator["compiledCode"].as_str().unwrap()).unwrap();
            let program = minicbor::decode::<ByteVec>(&code).unwrap();
            for count in 0..5 {
                let arguments = arguments(count);
                assert_eq!(apply(&program, &arguments), Ok(applied_there(&program, &arguments)), "{count}");
            }
        }
    }

    #[test]
    fn a_program_cut_short_or_followed_by_more_is_refused() {
        for text in TERMS {
            let program = flat(text);
            for length in 0..program.len() {
                assert_eq!(apply(&program[..length], &arguments(3)), Err(Malformed), "{text} until {length}");
            }
            assert_eq!(apply(&[&program[..], &[1]].concat(), &arguments(3)), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn terms_and_types_that_do_not_exist_are_refused() {
        // Version 1.1.0, followed by: the tag 10; a constant of type 9; one without a type; a list without an element
        // type.
        for term in [[0xa1, 0, 0], [0x4c, 0x90, 1], [0x41, 0, 0], [0x4b, 0xd4, 1]] {
            assert_eq!(apply(&[&[1, 1, 0][..], &term].concat(), &[]), Err(Malformed), "{term:?}");
        }
    }

    #[test]
    fn a_type_of_endless_lists_is_refused() {
        // A constant with an endless type: 1 0111 1 0101, list after list.
        let lists = [0b0100_1011, 0b1101_0110, 0b1111_0101, 0b1011_1101, 0b0110_1111, 0b0101_1011];
        assert_eq!(apply(&[&[1, 1, 0][..], &lists, &[0xff; 4_000]].concat(), &[]), Err(Malformed));
    }
}
