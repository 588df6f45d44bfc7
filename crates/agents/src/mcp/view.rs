//! Converts the tools' arguments and results (`api_types::mcp`) to and from the shop's types.

use api_types::mcp::{ContentPage, SearchListings};
use market::{catalogue::Filter, listing::CATEGORIES};

/// Maximum size of purchased content in one result, in bytes of its JSON in UTF-8. Clients truncate results of more
/// than 25,000 tokens, and no tokenizer makes more tokens than bytes.
pub const PAGE_BYTES: usize = 24_000;
/// Maximum number of listings in one result.
const MAX_LISTINGS: u32 = 50;
/// Maximum length of a search text in characters.
const MAX_QUERY: usize = 200;

/// Converts the arguments of a search to the catalogue's filter.
///
/// # Errors
/// Returns a message that tells the model which argument is invalid and what to send instead.
pub fn filter(asked: SearchListings) -> Result<Filter, String> {
    let category = asked.category.map(|named| {
        let known = CATEGORIES.into_iter().find(|category| category.eq_ignore_ascii_case(&named));
        known.ok_or_else(|| format!("category: must be one of {}.", CATEGORIES.join(", ")))
    });
    if asked.query.as_ref().is_some_and(|query| query.chars().count() > MAX_QUERY) {
        return Err(format!("query: must have at most {MAX_QUERY} characters."));
    }
    let limit = asked.limit.unwrap_or(20);
    if !(1..=MAX_LISTINGS).contains(&limit) {
        return Err(format!("limit: must be a whole number from 1 to {MAX_LISTINGS}."));
    }
    if asked.min_reputation.is_some_and(|score| score > 100) {
        return Err("minReputation: must be a whole number from 0 to 100.".into());
    }
    let cursor = asked.cursor.map(|cursor| {
        cursor
            .parse()
            .map_err(|()| "cursor: must be the nextCursor of an earlier result with the same arguments.".to_owned())
    });
    let max_price =
        asked.max_price_ada.map(|ada| lovelace(ada).ok_or("maxPriceAda: must be a positive amount of ADA."));
    Ok(Filter {
        category: category.transpose()?,
        mode: asked.mode,
        words: asked.query.filter(|query| !query.trim().is_empty()),
        max_price: max_price.transpose()?,
        min_reputation: asked.min_reputation,
        sort: asked.sort.unwrap_or_default(),
        limit: Some(limit),
        cursor: cursor.transpose()?,
        ..Filter::default()
    })
}

/// Converts ADA to lovelace, rounded down; `None` if out of range. Doubles are exact enough for all possible prices.
fn lovelace(ada: f64) -> Option<cardano::Lovelace> {
    let sensible = ada.is_finite() && (0.0..=45e9).contains(&ada);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 4.5e16")]
    sensible.then(|| (ada * 1e6 + 1e-3).floor() as u64).and_then(cardano::Lovelace::new)
}

/// Returns the number of bytes that a character takes in a JSON text.
const fn weight(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

/// Returns the part of purchased content that begins at the character `offset`, with as many characters as fit into
/// [`PAGE_BYTES`].
#[must_use]
pub fn content_page(content: &str, offset: u32) -> ContentPage {
    let count = |characters: usize| u32::try_from(characters).unwrap_or(u32::MAX);
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let mut room = PAGE_BYTES;
    let fits = |character: &char| match room.checked_sub(weight(*character)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let text: String = content.chars().skip(start).take_while(fits).collect();
    let total = content.chars().count();
    let end = start.saturating_add(text.chars().count());
    ContentPage {
        text,
        offset,
        next_offset: (end < total && start < total).then(|| count(end)),
        total_characters: count(total),
    }
}
