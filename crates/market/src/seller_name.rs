//! Display names of sellers.
//!
//! A name is not unique and proves nothing, so it is always shown beside the seller's address. A name is one line of
//! visible characters, none of which could change how the text around it is read.

use api_types::{Error, ErrorCode, MAX_SELLER_NAME};

use crate::visible::{is_blank, misleads, shows_something};

const FIELD: &str = "sellerName";

/// A valid display name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SellerName(String);

impl SellerName {
    /// Parses a name. Runs of spaces become one space, and leading and trailing spaces are removed. Returns `None` for
    /// an empty text, which removes the name.
    ///
    /// # Errors
    /// Returns an error that says which rule the name breaks.
    pub fn read(sent: &str) -> Result<Option<Self>, Error> {
        let invalid = |code, rule: &str| Err(Error::of_field(code, FIELD, rule));
        if sent.is_empty() {
            return Ok(None);
        }
        let name = sent.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if !shows_something(&name) {
            return invalid(ErrorCode::NothingVisible, "must have a character that can be seen");
        }
        if name.chars().count() > MAX_SELLER_NAME {
            return invalid(ErrorCode::InvalidLength, &format!("must have at most {MAX_SELLER_NAME} characters"));
        }
        if let Some(c) = name.chars().find(|c| is_forbidden(*c)) {
            let rule = format!("must not contain the invisible character U+{:04X}", u32::from(c));
            return invalid(ErrorCode::ForbiddenCharacter, &rule);
        }
        if is_like_an_address(&name) {
            return invalid(ErrorCode::InvalidValue, "must not look like an address, which is shown beside it");
        }
        Ok(Some(Self(name)))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a character is invisible, starts a line, or changes the writing direction. Spaces are allowed, and
/// so are the joiners and variation selectors that emoji and Persian need.
fn is_forbidden(c: char) -> bool {
    let shapes_neighbours = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    let is_invisible = c.is_control() || c.is_whitespace() || is_blank(c) || misleads(c);
    is_invisible && c != ' ' && !shapes_neighbours
}

fn is_like_an_address(name: &str) -> bool {
    let name = name.to_lowercase();
    ["addr_", "addr1"].iter().any(|prefix| name.contains(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &str) -> Result<Option<String>, ErrorCode> {
        SellerName::read(sent).map(|name| name.map(|SellerName(name)| name)).map_err(|error| error.code)
    }

    #[test]
    fn a_name_is_one_line_of_visible_characters() {
        let most = "ß".repeat(MAX_SELLER_NAME);
        let kept =
            ["A", "Ada & Söhne <b>\"</b>", "桜のポスター", "שלום", "👩\u{200d}🎨", "می\u{200c}خواهم", "Zoë", &most];
        for name in kept {
            assert_eq!(read(name), Ok(Some(name.to_owned())));
        }
        assert_eq!(read("  Studio   Nord "), Ok(Some("Studio Nord".to_owned())));
        assert_eq!(read(""), Ok(None));
        for (name, code) in [
            (" ", ErrorCode::NothingVisible),
            ("\u{200b}\u{2060}", ErrorCode::NothingVisible),
            ("\u{3164}", ErrorCode::NothingVisible),
            ("\u{200d}\u{fe0f}", ErrorCode::NothingVisible),
            (&"x".repeat(MAX_SELLER_NAME + 1), ErrorCode::InvalidLength),
            ("A\nB", ErrorCode::ForbiddenCharacter),
            ("A\tB", ErrorCode::ForbiddenCharacter),
            ("A\0", ErrorCode::ForbiddenCharacter),
            ("A\u{1b}[31m", ErrorCode::ForbiddenCharacter),
            ("A\u{2028}B", ErrorCode::ForbiddenCharacter),
            ("A\u{a0}B", ErrorCode::ForbiddenCharacter),
            ("\u{202e}ytnuoB", ErrorCode::ForbiddenCharacter),
            ("A\u{2066}B\u{2069}", ErrorCode::ForbiddenCharacter),
            ("A\u{200f}B", ErrorCode::ForbiddenCharacter),
            ("A\u{200b}B", ErrorCode::ForbiddenCharacter),
            ("A\u{e0041}", ErrorCode::ForbiddenCharacter),
            ("addr_test1vpu5vlrf4xkx", ErrorCode::InvalidValue),
            ("I am ADDR1Q9", ErrorCode::InvalidValue),
        ] {
            assert_eq!(read(name), Err(code), "{name:?}");
        }
        assert_eq!(SellerName::read("\u{202e}").unwrap_err().field.as_deref(), Some("sellerName"));
    }
}
