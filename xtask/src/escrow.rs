//! The escrow contract: from its blueprint to an address, its deployment, and actions by hand.

pub mod act;
pub mod deploy;
pub mod derive;

use std::{error::Error, path::PathBuf, process::ExitCode};

use blueprint::{Blueprint, BlueprintError};
use clap::{Args, Subcommand};

/// `cargo xtask escrow ...`
#[derive(Subcommand)]
pub enum EscrowCommand {
    /// Print the script and the preprod address that a blueprint has with these parameters.
    Derive(derive::DeriveArguments),
    /// Publish the script on the chain and write the deployment record.
    Deploy(deploy::DeployArguments),
    /// Show a deployment record and hold it against the chain.
    Show(deploy::ShowArguments),
    /// Do one thing with one escrow, by hand.
    Act(act::ActArguments),
}

/// Which blueprint to work with.
#[derive(Args)]
pub struct BlueprintArgument {
    /// A CIP-57 blueprint with the escrow's interface.
    #[arg(long, env = "ESCROW_BLUEPRINT", default_value = "contracts/plutus.json")]
    blueprint: PathBuf,
}

impl BlueprintArgument {
    fn load(&self) -> Result<Blueprint, BlueprintError> {
        Blueprint::load(&self.blueprint)
    }
}

/// Runs one command; what it prints is its result.
///
/// # Errors
/// Whatever keeps the command from an answer, said for people.
pub fn run(command: EscrowCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        EscrowCommand::Derive(arguments) => derive::run(&arguments),
        EscrowCommand::Deploy(arguments) => deploy::run(&arguments),
        EscrowCommand::Show(arguments) => deploy::show(&arguments),
        EscrowCommand::Act(arguments) => act::run(&arguments),
    }
}
