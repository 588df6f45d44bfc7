//! Commands for the escrow contract: its address, its deployment, and manual actions.

pub mod act;
pub mod deploy;
pub mod derive;

use std::{error::Error, path::PathBuf, process::ExitCode};

use blueprint::{Blueprint, BlueprintError};
use clap::{Args, Subcommand};

/// `cargo xtask escrow ...`
#[derive(Subcommand)]
pub enum EscrowCommand {
    /// Print the script and the preprod address of a blueprint with these parameters.
    Derive(derive::DeriveArguments),
    /// Publish the script on the chain and write the deployment record.
    Deploy(deploy::DeployArguments),
    /// Show a deployment record and compare it with the chain.
    Show(deploy::ShowArguments),
    /// Perform an action on an escrow manually.
    Act(act::ActArguments),
}

/// The blueprint to use.
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

/// Runs a command, which prints its result.
///
/// # Errors
/// Returns an error with a message for the operator if the command fails.
pub fn run(command: EscrowCommand) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        EscrowCommand::Derive(arguments) => derive::run(&arguments),
        EscrowCommand::Deploy(arguments) => deploy::run(&arguments),
        EscrowCommand::Show(arguments) => deploy::show(&arguments),
        EscrowCommand::Act(arguments) => act::run(&arguments),
    }
}
