//! Templates for repeated quotes of one sale. Two quotes differ only in a nonce, four deadlines and what follows from
//! the signature. Everything else is encoded once, with placeholders (*marks*) for these values.

use ::escrow::Deadlines;
use cardano::{ContentHash, hash::to_hex, slots::Millis};

use super::{Draft, EscrowMethod, OfferError, PaymentMethod, Sale};
use crate::{
    escrow::encoded_identifier,
    wire::{PaymentRequirements, blanks::Blanks},
};

/// Start of the times used as marks, which no real quote contains.
const MARKED_MS: Millis = 10_000_000_000_000;
/// Number of marks: seller's nonce, four deadlines, reference signature, identifier.
const PARTS: usize = 7;

/// The common part of all quotes for one sale.
#[derive(Clone, Debug)]
pub struct QuoteTemplate {
    entry: PaymentRequirements,
    marks: [String; PARTS],
    /// Text of the signed terms.
    terms: Blanks,
    /// Bytes to sign, up to the digest.
    to_sign: Vec<u8>,
    reference_signature: Blanks,
    identifier: Blanks,
}

/// A quote without the seller's signature.
#[derive(Debug)]
pub struct TemplateQuote<'t> {
    template: &'t QuoteTemplate,
    promised: [String; 5],
    digest: ContentHash,
    to_sign: Vec<u8>,
}

/// The values that replace a template's marks in a quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuoteParts([String; PARTS]);

impl QuoteParts {
    /// Returns the values in the order of [`QuoteTemplate::marks`].
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl EscrowMethod {
    /// Creates a template for a sale. The marks are derived from random bytes, so that no seller can have put one into
    /// a title.
    ///
    /// # Errors
    /// See [`PaymentMethod::draft`].
    pub fn template(&self, sale: &Sale<'_>, random: [u8; 32]) -> Result<QuoteTemplate, OfferError> {
        let [a, b, c, d, ..] = random;
        let clock = MARKED_MS.saturating_add(u32::from_le_bytes([a, b, c, d]).into());
        let Draft::Unsigned(quote) = self.draft(sale, clock, random)? else { return Err(OfferError::Marks) };
        let mut signature = [0; 64];
        for (mark, byte) in signature.iter_mut().zip(random.iter().cycle()) {
            *mark = !byte;
        }
        let terms = quote.extra.signed_terms(&quote.requirements).ok_or(OfferError::Time)?;
        let terms = String::from_utf8(terms).map_err(|_| OfferError::Marks)?;
        let digest = quote.digest;
        let to_sign = quote.to_sign().strip_suffix(digest.0.as_bytes()).ok_or(OfferError::Marks)?.to_vec();
        let entry = quote.signed(signature).requirements;
        let extra = entry.extra.escrow().ok_or(OfferError::Marks)?;
        let promised = promised(random, &extra.terms.deadlines);
        let reference = to_hex(&extra.reference_signature);
        let [nonce, ..] = &promised;
        let blanks = |text: &str, marks: &[&str]| Blanks::of(text, marks).ok_or(OfferError::Marks);
        Ok(QuoteTemplate {
            terms: blanks(&terms, &promised.each_ref().map(String::as_str))?,
            to_sign,
            reference_signature: blanks(&reference, &[&to_hex(digest.0.as_bytes()), &to_hex(signature)])?,
            identifier: blanks(&extra.identifier(&self.pay_to).text(), &[nonce, &reference])?,
            marks: parts(promised, reference, extra.blockchain_identifier.clone()),
            entry,
        })
    }
}

impl QuoteTemplate {
    /// Returns an entry of `accepts` that contains the marks.
    #[must_use]
    pub const fn entry(&self) -> &PaymentRequirements {
        &self.entry
    }

    /// Returns the marks, each of which occurs exactly once in the entry's JSON.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        self.marks.iter().map(String::as_str)
    }

    /// Drafts a quote that equals that of [`PaymentMethod::draft`] byte for byte.
    ///
    /// # Errors
    /// [`OfferError::Time`].
    pub fn draft(&self, clock: Millis, nonce: [u8; 32]) -> Result<TemplateQuote<'_>, OfferError> {
        let promised = promised(nonce, &Deadlines::issue(clock).ok_or(OfferError::Time)?);
        let digest = ContentHash::of(self.terms.filled(&promised.each_ref().map(String::as_str)).as_bytes());
        let to_sign = [&self.to_sign, &digest.as_bytes()[..]].concat();
        Ok(TemplateQuote { template: self, promised, digest, to_sign })
    }
}

impl TemplateQuote<'_> {
    /// Returns the bytes that the seller signs.
    #[must_use]
    pub fn to_sign(&self) -> &[u8] {
        &self.to_sign
    }

    /// Adds the seller's signature.
    #[must_use]
    pub fn signed(self, signature: [u8; 64]) -> QuoteParts {
        let Self { template, promised, digest, .. } = self;
        let reference = template.reference_signature.filled(&[&to_hex(digest.as_bytes()), &to_hex(signature)]);
        let [nonce, ..] = &promised;
        let identifier = encoded_identifier(&template.identifier.filled(&[nonce, &reference]));
        QuoteParts(parts(promised, reference, identifier))
    }
}

fn promised(nonce: [u8; 32], deadlines: &Deadlines) -> [String; 5] {
    let Deadlines { pay_by, submit_result, unlock, external_dispute_unlock } = deadlines;
    let [a, b, c, d] = [pay_by, submit_result, unlock, external_dispute_unlock].map(ToString::to_string);
    [to_hex(nonce), a, b, c, d]
}

fn parts(promised: [String; 5], reference: String, identifier: String) -> [String; PARTS] {
    let [nonce, pay_by, submit_result, unlock, external_dispute_unlock] = promised;
    [nonce, pay_by, submit_result, unlock, external_dispute_unlock, reference, identifier]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        escrow::{
            TransferMethod,
            fixture::{NOW, key, method, sale},
        },
        method::Offered,
    };

    fn written(template: &QuoteTemplate, clock: Millis, nonce: [u8; 32]) -> String {
        let entry = serde_json::to_string(template.entry()).unwrap();
        let blanks = Blanks::of(&entry, &template.marks().collect::<Vec<_>>()).unwrap();
        let draft = template.draft(clock, nonce).unwrap();
        let signature = key(1).sign(draft.to_sign());
        blanks.filled(&draft.signed(signature).texts().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_quote_by_template_is_the_quote(random in any::<[u8; 32]>(), nonce in any::<[u8; 32]>(), later in 0..1_u64 << 40) {
            for name in [TransferMethod::Escrow, TransferMethod::Masumi] {
                let method = method(name);
                let Offered { requirements, .. } = method.offer(&sale(), NOW + later, nonce).unwrap();
                let template = method.template(&sale(), random).unwrap();
                prop_assert_eq!(written(&template, NOW + later, nonce), serde_json::to_string(&requirements).unwrap());
            }
        }
    }

    #[test]
    fn terms_that_cannot_be_quoted_have_no_template() {
        let cheap = Sale { price: cardano::Lovelace::from_ada(1), ..sale() };
        let refused = method(TransferMethod::Escrow).template(&cheap, [7; 32]).map(drop);
        assert_eq!(refused, Err(OfferError::PriceTooLow));
        let template = method(TransferMethod::Escrow).template(&sale(), [7; 32]).unwrap();
        assert_eq!(template.draft(Millis::MAX, [7; 32]).map(drop), Err(OfferError::Time));
    }
}
