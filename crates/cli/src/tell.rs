//! What people and programs get to see: results on stdout, what goes on meanwhile on stderr.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;

/// Who is told.
pub struct Tell {
    /// Whether results are JSON.
    pub json: bool,
}

impl Tell {
    /// What goes on, for who waits.
    pub fn progress(&self, words: &str) {
        eprintln!("{words}");
    }

    /// The result: JSON for programs, words for people.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn result(&self, json: &Value, words: &str) -> Result<(), Failure> {
        let text = if self.json { format!("{json:#}") } else { words.to_owned() };
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

    /// Why a command failed.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            eprintln!("{}", serde_json::json!({ "error": failure.to_string(), "kind": failure.kind() }));
        } else {
            // Others' words may be in it.
            eprintln!("surety: {}", plain(&failure.to_string()));
        }
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_title_cannot_steer_a_terminal() {
        assert_eq!(plain("\u{1b}[2Jfree\r\nmoney\u{9b}1m"), " [2Jfree  money 1m");
    }
}
