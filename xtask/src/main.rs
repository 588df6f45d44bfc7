//! `cargo xtask`: what an operator or developer does from a shell.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::escrow;

/// Operator and developer commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The escrow contract: derive its address, check its rules.
    #[command(subcommand)]
    Escrow(escrow::Command),
}

fn main() -> ExitCode {
    let Command::Escrow(command) = Cli::parse().command;
    match escrow::run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}
