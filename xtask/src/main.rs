//! `cargo xtask`: commands for operators and developers.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a developer's machine")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{escrow, secret};

/// Operator and developer commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The escrow contract: its address, its deployment, manual actions.
    #[command(subcommand)]
    Escrow(escrow::EscrowCommand),
    /// Print the address of a secret.
    Address(secret::AddressArguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Escrow(command) => escrow::run(command),
        Command::Address(arguments) => secret::run(&arguments).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    match done {
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
