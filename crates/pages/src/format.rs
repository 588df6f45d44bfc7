//! Amounts, times and hashes in words.

use cardano::Lovelace;
use maud::{Markup, html};
use time::{
    OffsetDateTime,
    format_description::{BorrowedFormatItem, well_known::Rfc3339},
    formatting::Formattable,
    macros::format_description,
};

const MINUTE_MS: u64 = 60_000;

type Format = &'static [BorrowedFormatItem<'static>];
const DAY: Format = format_description!("[day padding:none] [month repr:short] [year]");
const CLOCK: Format = format_description!("[hour]:[minute] UTC");
const WHOLE: Format = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");

fn written(at_ms: u64, format: &(impl Formattable + ?Sized)) -> String {
    let time = i64::try_from(at_ms / 1_000).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(format).ok()).unwrap_or_else(|| "at no known time".to_owned())
}

/// A time in UTC; the common script shows it in the reader's zone, in the form that `shown` names.
fn stamped(at_ms: u64, shown: &str, format: Format) -> Markup {
    html! { time datetime=(stamp(at_ms)) data-as=(shown) { (written(at_ms, format)) } }
}

/// A time, to the minute.
pub fn at(at_ms: u64) -> Markup {
    stamped(at_ms, "at", WHOLE)
}

/// A time of a day that is near.
pub fn clock(at_ms: u64) -> Markup {
    stamped(at_ms, "clock", CLOCK)
}

/// A day.
pub fn on(at_ms: u64) -> Markup {
    stamped(at_ms, "day", DAY)
}

/// A time as machines read it (RFC 3339).
pub fn stamp(at_ms: u64) -> String {
    written(at_ms, &Rfc3339)
}

/// A day as a file's name or a table has it: `2026-11-26`.
pub fn date(at_ms: u64) -> String {
    stamp(at_ms).get(..10).unwrap_or_default().to_owned()
}

/// How far a time is from now, both POSIX ms; the common script keeps it true.
pub fn span(at_ms: u64, now_ms: u64) -> Markup {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let left = signed(at_ms).saturating_sub(signed(now_ms));
    html! {
        time datetime=(stamp(at_ms)) data-left=(left) title=(written(at_ms, WHOLE)) { (distance(at_ms, now_ms)) }
    }
}

/// How far a time is from now: `in 12 min`, `3 h ago`.
pub fn distance(at_ms: u64, now_ms: u64) -> String {
    let span = amount_of_time(at_ms.abs_diff(now_ms));
    match span {
        None => "now".to_owned(),
        Some(span) if at_ms > now_ms => format!("in {span}"),
        Some(span) => format!("{span} ago"),
    }
}

/// Rounded down to what people count in; `None` for less than a minute.
fn amount_of_time(ms: u64) -> Option<String> {
    let minutes = ms / MINUTE_MS;
    match (minutes, minutes / 60, minutes / (60 * 24)) {
        (0, ..) => None,
        (minutes, 0, _) => Some(format!("{minutes} min")),
        (_, hours, 0 | 1) => Some(format!("{hours} h")),
        (_, _, days) => Some(format!("{days} days")),
    }
}

/// An amount: `12.5 tADA`.
pub fn tada(amount: Lovelace) -> Markup {
    let words = amount.display_tada();
    let (number, unit) = words.split_once(' ').unwrap_or((&words, ""));
    html! { span.amount { (number) " " small { (unit) } } }
}

/// The beginning and the end of a hash or an address.
pub fn short(text: &str) -> String {
    const HEAD: usize = 14;
    const TAIL: usize = 6;
    let count = text.chars().count();
    if count <= HEAD.saturating_add(TAIL).saturating_add(1) {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(count.saturating_sub(TAIL)).collect();
    format!("{head}…{tail}")
}

/// The beginning of a text, at most this many characters, cut between words where there are any.
pub fn clipped(text: &str, most: usize) -> String {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain.chars().count() <= most {
        return plain;
    }
    let cut: String = plain.chars().take(most.saturating_sub(1)).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{cut}…")
}

/// A name for a file with this text in it: `saas-landing-page-kit.md`.
pub fn file_name(title: &str) -> String {
    const MOST: usize = 40;
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if !name.is_empty() && name.len().saturating_add(word.len()) >= MOST {
            break;
        }
        name.push_str(if name.is_empty() { "" } else { "-" });
        name.extend(word.chars().take(MOST).map(|c| c.to_ascii_lowercase()));
    }
    format!("{}.md", if name.is_empty() { "prompt" } else { &name })
}

/// `1 sale`, `2 sales`.
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        let now = 1_790_000_000_000;
        for (at, said) in [
            (now, "now"),
            (now + 59_999, "now"),
            (now + MINUTE_MS, "in 1 min"),
            (now + 59 * MINUTE_MS, "in 59 min"),
            (now - 61 * MINUTE_MS, "1 h ago"),
            (now + 47 * 60 * MINUTE_MS, "in 47 h"),
            (now - 48 * 60 * MINUTE_MS, "2 days ago"),
        ] {
            assert_eq!(distance(at, now), said);
        }
        assert_eq!(
            at(1_655_769_600_000).into_string(),
            "<time datetime=\"2022-06-21T00:00:00Z\" data-as=\"at\">21 Jun 2022, 00:00 UTC</time>"
        );
        assert_eq!(date(1_655_769_600_000), "2022-06-21");
        assert!(at(u64::MAX).into_string().contains("no known time"));
    }

    #[test]
    fn long_texts_are_cut_where_they_can_be() {
        assert_eq!(clipped("one  two\nthree", 20), "one two three");
        assert_eq!(clipped("one two three", 9), "one two…");
        assert_eq!(clipped("ééééé", 4), "ééé…");
        assert_eq!(file_name("SaaS landing page kit, 2026 <edition>"), "saas-landing-page-kit-2026-edition.md");
        assert_eq!(file_name("../\u{202e}"), "prompt.md");
        assert!(file_name(&"word ".repeat(24)).len() <= 43 && file_name(&"w".repeat(120)).len() <= 43);
        assert_eq!(short("short"), "short");
        assert_eq!(short(&"a".repeat(64)), format!("{}…{}", "a".repeat(14), "a".repeat(6)));
    }
}
