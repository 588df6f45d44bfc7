//! `cargo xtask escrow derive`: which script and address a deployment will have, before anything is on chain.

use std::{error::Error, process::ExitCode};

use clap::Args;

use super::{BlueprintArgument, parameters::Parameters};

/// The parameters of a deployment.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    blueprint: BlueprintArgument,
    /// Key hashes of the admins, separated by commas. A repeated entry has as many votes.
    #[arg(long, value_delimiter = ',', required = true)]
    admins: Vec<String>,
    /// Votes that a decision on a dispute needs.
    #[arg(long)]
    required: u32,
    /// How long a party waits between two of its own actions, in ms.
    #[arg(long, allow_negative_numbers = true)]
    cooldown: i64,
    /// Print the script's CBOR too.
    #[arg(long)]
    script: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let parameters = Parameters::parse(arguments.required, &arguments.admins, arguments.cooldown)?;
    let script = arguments.blueprint.load()?.apply(&parameters)?;
    println!("hash     {}", script.hash);
    println!("address  {}", script.address());
    println!("bytes    {}", script.cbor.len());
    if arguments.script {
        println!("script   {}", hex::encode(&script.cbor));
    }
    Ok(ExitCode::SUCCESS)
}
