//! What people and programs get to see: results on stdout, what goes on meanwhile on stderr.

use std::{
    borrow::Cow,
    io::{IsTerminal, Write},
    process::ExitCode,
};

use serde_json::{Value, json};

use crate::failure::Failure;

/// How this program is called here: Cargo tells the programs that it runs where their crate is.
pub fn program() -> &'static str {
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() { "cargo surety" } else { "surety" }
}

/// Words with the commands in them, between backticks, as they are called here.
fn as_called<'a>(words: &'a str, program: &str) -> Cow<'a, str> {
    if program == "surety" { words.into() } else { words.replace("`surety ", &format!("`{program} ")).into() }
}

/// Who is told.
pub struct Tell {
    /// Whether results are JSON.
    pub json: bool,
}

impl Tell {
    /// What goes on, for who waits.
    pub fn progress(&self, words: &str) {
        eprintln!("{}", as_called(words, program()));
    }

    /// The result: JSON for programs, words for people.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn result(&self, json: &Value, words: &str) -> Result<(), Failure> {
        let text = if self.json { format!("{json:#}") } else { as_called(words, program()).into_owned() };
        write(format!("{text}\n").as_bytes())
    }

    /// Bytes that were bought: as they are, but for a terminal, which must not obey them.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn content(&self, content: &[u8]) -> Result<(), Failure> {
        if !std::io::stdout().is_terminal() {
            return write(content);
        }
        let text: String =
            String::from_utf8_lossy(content).chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        write(text.as_bytes())
    }

    /// Why a command failed; its exit code.
    pub fn failure(&self, failure: &Failure) -> ExitCode {
        let (code, kind) = failure.kind();
        if self.json {
            eprintln!("{}", json!({ "error": failure.to_string(), "kind": kind }));
        } else {
            // Others' words may be in it.
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

/// Foreign words on one line, without what a terminal would obey.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Lines, each as [`plain`] has it.
pub fn plain_lines(lines: &[String]) -> String {
    lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{as_called, plain};

    #[test]
    fn hints_name_the_command_as_it_was_typed() {
        let hint = "not signed in: `surety sign-in`";
        assert_eq!(as_called(hint, "surety"), hint);
        assert_eq!(as_called(hint, "cargo surety"), "not signed in: `cargo surety sign-in`");
    }

    #[test]
    fn a_title_cannot_steer_a_terminal() {
        assert_eq!(plain("\u{1b}[2Jfree\r\nmoney\u{9b}1m"), " [2Jfree  money 1m");
    }
}
