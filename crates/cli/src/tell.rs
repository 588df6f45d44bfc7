//! Output of commands: results on stdout, progress and errors on stderr.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{IsTerminal, Write},
    process::ExitCode,
    sync::Mutex,
};

use serde_json::{Value, json};

use crate::failure::Failure;

/// Returns the command with which the user called this program: `cargo surety` or `surety`. The two are distinguished
/// by an environment variable that Cargo sets.
pub fn program() -> &'static str {
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() { "cargo surety" } else { "surety" }
}

/// Formats a POSIX time in ms for people: `26 Nov 2026, 17:05 UTC`.
pub fn time_of(ms: u64) -> String {
    let format = time::macros::format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
    let time =
        i64::try_from(ms / 1_000).ok().and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(format).ok()).unwrap_or_else(|| "at no known time".to_owned())
}

/// Replaces `surety` in a message by the command with which the user called the program.
fn as_called<'a>(words: &'a str, program: &str) -> Cow<'a, str> {
    if program == "surety" { words.into() } else { words.replace("`surety ", &format!("`{program} ")).into() }
}

/// Message for a user who interrupts the program (Ctrl-C) while a signed transaction may still be included. Empty if
/// there is no such transaction.
static UNDER_WAY: Mutex<String> = Mutex::new(String::new());

/// Sets the message that is printed if the user interrupts the program (Ctrl-C).
pub fn under_way(words: String) {
    if let Ok(mut told) = UNDER_WAY.lock() {
        *told = words;
    }
}

/// Installs a handler for interruptions (Ctrl-C). The handler prints the message set by [`under_way`] and exits with
/// code 130.
pub fn on_interruption(tell: Tell) {
    // If no handler can be installed, an interruption ends the program without this message.
    let _ = ctrlc::set_handler(move || {
        let words = UNDER_WAY.lock().map(|words| words.clone()).unwrap_or_default();
        if !words.is_empty() {
            let _ = tell.failure(&Failure::Pending(format!("interrupted: {words}")));
        }
        std::process::exit(130);
    });
}

/// The output of a command, as text or JSON.
#[derive(Clone, Copy)]
pub struct Tell {
    /// Whether results and errors are printed as JSON.
    pub json: bool,
}

impl Tell {
    /// Prints progress.
    pub fn progress(&self, words: &str) {
        eprintln!("{}", as_called(words, program()));
    }

    /// Prints a result: `json` if JSON was requested, otherwise the text `words`.
    ///
    /// # Errors
    /// Returns an error if standard output is closed.
    pub fn result(&self, json: &Value, words: &str) -> Result<(), Failure> {
        let text = if self.json { format!("{json:#}") } else { as_called(words, program()).into_owned() };
        write(format!("{text}\n").as_bytes())
    }

    /// Prints purchased content byte for byte. Control characters are removed if standard output is a terminal.
    ///
    /// # Errors
    /// Returns an error if standard output is closed.
    pub fn content(&self, content: &[u8]) -> Result<(), Failure> {
        if !std::io::stdout().is_terminal() {
            return write(content);
        }
        let text: String =
            String::from_utf8_lossy(content).chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        write(text.as_bytes())
    }

    /// Prints an error and returns its exit code.
    pub fn failure(&self, failure: &Failure) -> ExitCode {
        let (code, kind) = failure.kind();
        if self.json {
            eprintln!("{}", json!({ "error": failure.to_string(), "kind": kind }));
        } else {
            // The message may contain text of others.
            eprintln!("surety: {}", plain(&as_called(&failure.to_string(), program())));
        }
        code.into()
    }
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| Failure::Refused(format!("cannot write the result: {error}")))
}

/// Formats a count with its noun in singular or plural: `1 transaction`, `2 transactions`.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Replaces control characters in an untrusted text, because they could control the user's terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Replaces control characters in each line like [`plain`], and joins the lines.
pub fn plain_lines(lines: &[String]) -> String {
    lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{as_called, counted, plain};

    #[test]
    fn hints_name_the_command_as_it_was_typed() {
        let hint = "not signed in: `surety sign-in`";
        assert_eq!(as_called(hint, "surety"), hint);
        assert_eq!(as_called(hint, "cargo surety"), "not signed in: `cargo surety sign-in`");
    }

    #[test]
    fn one_thing_is_counted_in_the_singular() {
        let told = [0, 1, 2, 11].map(|count| counted(count, "transaction"));
        assert_eq!(told, ["0 transactions", "1 transaction", "2 transactions", "11 transactions"]);
    }

    #[test]
    fn a_title_cannot_steer_a_terminal() {
        assert_eq!(plain("\u{1b}[2Jfree\r\nmoney\u{9b}1m"), " [2Jfree  money 1m");
    }
}
