//! `surety events`: prints the events that the signed-in account is notified of.

use api_types::Event;
use clap::Args;
use serde_json::json;

use crate::{
    Shop,
    account::ask,
    failure::Failure,
    tell::{plain, time_of},
};

/// Arguments of `events`.
#[derive(Args)]
pub struct EventsArguments {
    /// Maximum number of events.
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    most: u32,
}

/// Prints the account's events, newest first.
pub fn run(shop: &Shop, arguments: &EventsArguments) -> Result<(), Failure> {
    let most = usize::try_from(arguments.most).unwrap_or(usize::MAX);
    let (mut events, mut next): (Vec<Event>, _) = (vec![], Some("/me/events".to_owned()));
    while let Some(path) = next.filter(|_| events.len() < most) {
        let answer = ask(shop, "GET", &path, None)?;
        events.extend(answer.json::<Vec<Event>>()?);
        next = answer.header("link").and_then(following);
    }
    events.truncate(most);
    let line = |event: &Event| {
        let undone = if event.undone_by.is_some() { " (undone)" } else { "" };
        format!("{}  {}{undone}\n  {}{}", time_of(event.at), plain(&event.words()), shop.service.base(), event.path())
    };
    let lines: Vec<String> = events.iter().map(line).collect();
    let words = if lines.is_empty() { "no events yet".to_owned() } else { lines.join("\n") };
    shop.tell.result(&json!(events), &words)
}

/// Extracts the path of the next page from a `Link` header. Returns `None` if the link leads to anything but the list
/// of events.
fn following(link: &str) -> Option<String> {
    let address = link.strip_prefix('<')?.split_once('>')?.0;
    let cursor = address.split_once("/me/events?cursor=")?.1;
    let is_number = !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("/me/events?cursor={cursor}"))
}

#[cfg(test)]
mod tests {
    use super::following;

    #[test]
    fn a_session_follows_no_link_but_to_the_next_events() {
        let next = following("<https://shop.example/me/events?cursor=12>; rel=\"next\"");
        assert_eq!(next.as_deref(), Some("/me/events?cursor=12"));
        for link in [
            "",
            "<https://shop.example/me>; rel=\"next\"",
            "<https://evil.example/me/events?cursor=1&x=/>",
            "/me/events?cursor=1",
        ] {
            assert_eq!(following(link), None, "{link}");
        }
    }
}
