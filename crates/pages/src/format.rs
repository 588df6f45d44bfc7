//! Amounts, times and hashes in words.

use cardano::Lovelace;
use maud::{Markup, html};
use time::OffsetDateTime;

const MINUTE_MS: u64 = 60_000;

/// By its parts: the library's interpreter of formats adds six kilobytes to the program, after gzip.
fn written(at_ms: u64, words: impl Fn(OffsetDateTime) -> String) -> String {
    let time = i64::try_from(at_ms / 1_000).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.map_or_else(|| "at no known time".to_owned(), words)
}

fn day(time: OffsetDateTime) -> String {
    let month = time.month().to_string();
    format!("{} {} {}", time.day(), month.get(..3).unwrap_or(&month), time.year())
}

fn minute(time: OffsetDateTime) -> String {
    format!("{:02}:{:02} UTC", time.hour(), time.minute())
}

fn machine(time: OffsetDateTime) -> String {
    let (year, month, day) = time.to_calendar_date();
    format!("{year}-{:02}-{day:02}T{:02}:{:02}:{:02}Z", u8::from(month), time.hour(), time.minute(), time.second())
}

fn stamped(at_ms: u64, words: impl Fn(OffsetDateTime) -> String) -> Markup {
    html! { time datetime=(written(at_ms, machine)) { (written(at_ms, words)) } }
}

/// A time, to the minute.
pub fn at(at_ms: u64) -> Markup {
    stamped(at_ms, |time| format!("{}, {}", day(time), minute(time)))
}

/// A time of a day that is near.
pub fn clock(at_ms: u64) -> Markup {
    stamped(at_ms, minute)
}

/// A day.
pub fn on(at_ms: u64) -> Markup {
    stamped(at_ms, day)
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

/// `1 sale`, `2 sales`.
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
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
            "<time datetime=\"2022-06-21T00:00:00Z\">21 Jun 2022, 00:00 UTC</time>"
        );
        assert!(at(u64::MAX).into_string().contains("no known time"));
    }

    #[test]
    fn long_texts_are_cut_where_they_can_be() {
        assert_eq!(clipped("one  two\nthree", 20), "one two three");
        assert_eq!(clipped("one two three", 9), "one two…");
        assert_eq!(clipped("ééééé", 4), "ééé…");
        assert_eq!(short("short"), "short");
        assert_eq!(short(&"a".repeat(64)), format!("{}…{}", "a".repeat(14), "a".repeat(6)));
    }
}
