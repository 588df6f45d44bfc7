//! Formats amounts, times and hashes for people.

use cardano::Lovelace;
use maud::{Markup, html};
use time::{
    OffsetDateTime,
    format_description::{BorrowedFormatItem, well_known::Rfc3339},
    formatting::Formattable,
    macros::format_description,
};

type Format = &'static [BorrowedFormatItem<'static>];
const DAY: Format = format_description!("[day padding:none] [month repr:short] [year]");
const CLOCK: Format = format_description!("[hour]:[minute] UTC");
const WHOLE: Format = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");

fn written(at_ms: u64, format: &(impl Formattable + ?Sized)) -> String {
    let time = i64::try_from(at_ms / 1_000).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(format).ok()).unwrap_or_else(|| "at no known time".to_owned())
}

/// Renders a time in UTC. A script of the page converts it to the reader's time zone, in the form that `shown` names:
/// `at`, `clock` or `day`.
fn stamped(at_ms: u64, shown: &str, format: Format) -> Markup {
    html! { time datetime=(stamp(at_ms)) data-as=(shown) { (written(at_ms, format)) } }
}

/// Renders the date and time of a POSIX time in ms, to the minute.
pub fn at(at_ms: u64) -> Markup {
    stamped(at_ms, "at", WHOLE)
}

/// Renders the time of day of a POSIX time in ms.
pub fn clock(at_ms: u64) -> Markup {
    stamped(at_ms, "clock", CLOCK)
}

/// Renders the date of a POSIX time in ms.
pub fn on(at_ms: u64) -> Markup {
    stamped(at_ms, "day", DAY)
}

/// Formats a time by RFC 3339.
pub fn stamp(at_ms: u64) -> String {
    written(at_ms, &Rfc3339)
}

/// Formats a date as `2026-11-26`, for file names and tables.
pub fn date(at_ms: u64) -> String {
    stamp(at_ms).get(..10).unwrap_or_default().to_owned()
}

/// Renders a time. A script of the page replaces it with the distance from now, such as `in 5 min` or `2 h ago`, and
/// keeps the text up to date.
pub fn relative_time(at_ms: u64, now_ms: u64) -> Markup {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let (left, at) = (signed(at_ms).saturating_sub(signed(now_ms)), written(at_ms, WHOLE));
    html! { time datetime=(stamp(at_ms)) data-left=(left) title=(at) { (at) } }
}

/// Renders an amount: `12.5 tADA`.
pub fn tada(amount: Lovelace) -> Markup {
    let words = amount.display_tada();
    let (number, unit) = words.split_once(' ').unwrap_or((&words, ""));
    html! { span.amount { (number) " " small { (unit) } } }
}

/// Abbreviates a hash or an address (ASCII) to its first and last characters.
pub fn short(text: &str) -> String {
    const WHOLE: usize = 21;
    match (text.get(..14), text.get(text.len().saturating_sub(6)..)) {
        (Some(head), Some(tail)) if text.len() > WHOLE => format!("{head}…{tail}"),
        _ => text.to_owned(),
    }
}

/// Derives a file name from a title: `saas-landing-page-kit.md`. Letters of all scripts are kept.
pub fn file_name(title: &str) -> String {
    const MOST: usize = 40;
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(MOST).collect();
    let name = name.trim_end_matches('-');
    format!("{}.md", if name.is_empty() { "prompt" } else { name })
}

/// Formats a number with its noun: `1 sale`, `2 sales`.
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(
            at(1_655_769_600_000).into_string(),
            "<time datetime=\"2022-06-21T00:00:00Z\" data-as=\"at\">21 Jun 2022, 00:00 UTC</time>"
        );
        assert_eq!(
            relative_time(1_655_769_600_000, 1_655_769_601_000).into_string(),
            "<time datetime=\"2022-06-21T00:00:00Z\" data-left=\"-1000\" title=\"21 Jun 2022, 00:00 UTC\">21 Jun 2022, 00:00 UTC</time>"
        );
        assert_eq!(date(1_655_769_600_000), "2022-06-21");
        assert!(at(u64::MAX).into_string().contains("no known time"));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(file_name("SaaS landing page kit, 2026 <edition>"), "saas-landing-page-kit-2026-edition.md");
        assert_eq!(file_name("Très long titre, façon « été »"), "très-long-titre-façon-été.md");
        assert_eq!(file_name("../\u{202e}"), "prompt.md");
        assert!(file_name(&"word ".repeat(24)).len() <= 43 && file_name(&"w".repeat(120)).len() <= 43);
        assert_eq!(short("short"), "short");
        assert_eq!(short(&"a".repeat(64)), format!("{}…{}", "a".repeat(14), "a".repeat(6)));
    }
}
