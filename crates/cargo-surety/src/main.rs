//! `cargo surety`: builds the program `surety` if necessary, and runs it.
//!
//! Cargo alone either compiles silently or prints lines at every command. This wrapper announces a compilation at once,
//! says how long it takes, shows what is being compiled, and prints nothing if everything is up to date. It has no
//! dependencies, so that it is built within a second.

#![allow(clippy::disallowed_types, reason = "asks Cargo")]

use std::{
    env,
    io::{self, BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
};

/// Notice before the first crate is compiled. On two cores the whole build took 82 seconds.
const COMPILES: &str = "compiling surety: about a minute and a half the first time, seconds after a change";

/// Filters Cargo's output for people.
#[derive(Debug, Default)]
struct Told {
    compiles: bool,
}

impl Told {
    /// Returns the lines to print for a line of Cargo's output.
    fn of(&mut self, line: &str) -> Vec<String> {
        let word = line.split_whitespace().next().unwrap_or_default();
        match word {
            "Finished" => vec![],
            "Compiling" | "Downloading" if !self.compiles => {
                self.compiles = true;
                vec![COMPILES.to_owned(), line.to_owned()]
            }
            _ => vec![line.to_owned()],
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo surety: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<ExitCode> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--package", "surety-cli", "--manifest-path"]);
    build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    let mut build = build.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut told = Told::default();
    for line in build.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines()) {
        for line in told.of(&line?) {
            eprintln!("{line}");
        }
    }
    if !build.wait()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    // Both programs are built into one folder.
    let program = env::current_exe()?.with_file_name(format!("surety{}", env::consts::EXE_SUFFIX));
    let ended = Command::new(program).args(env::args_os().skip(1)).status()?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_output_begins_with_a_notice_and_a_finished_build_prints_nothing() {
        let mut told = Told::default();
        assert!(told.of("    Finished `dev` profile [unoptimized] target(s) in 0.21s").is_empty());
        assert_eq!(told.of("   Compiling libc v0.2.191"), [COMPILES, "   Compiling libc v0.2.191"]);
        assert_eq!(told.of("   Compiling serde v1.0.229"), ["   Compiling serde v1.0.229"]);
        assert!(told.of("    Finished `dev` profile [unoptimized] target(s) in 82.02s").is_empty());
        assert_eq!(told.of("error: could not compile"), ["error: could not compile"]);
        let waits = "    Blocking waiting for file lock on build directory";
        assert_eq!(Told::default().of(waits), [waits]);
    }
}
