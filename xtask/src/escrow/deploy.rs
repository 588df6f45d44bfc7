//! `cargo xtask escrow deploy` publishes the contract as a reference script and writes the deployment record; `cargo
//! xtask escrow show` compares a record with the chain.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use blueprint::Script;
use cardano::{
    TxRef,
    address::PaymentAddress,
    slots::SlotConfig,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use clap::Args;
use escrow::{Deployment, Parameters};

use provider::Provider;

use super::{BlueprintArgument, derive};
use crate::secret;

/// Validity of the publishing transaction in seconds, and the maximum time for which the command waits for its block.
const VALID_SECONDS: u64 = 600;

/// Arguments of `deploy`.
#[derive(Args)]
pub struct DeployArguments {
    #[command(flatten)]
    blueprint: BlueprintArgument,
    #[command(flatten)]
    provider: Provider,
    /// Key hashes of the arbiters, separated by commas; by default the key hash of the secret in ARBITER_SECRET.
    #[arg(long, value_delimiter = ',')]
    admins: Vec<String>,
    /// Number of votes needed to decide a dispute.
    #[arg(long, default_value_t = 1)]
    required: u32,
    /// Time that a party has to wait between two actions, in ms.
    #[arg(long, default_value_t = 60_000, allow_negative_numbers = true)]
    cooldown: i64,
    /// Environment variable with the secret of the wallet that pays for the script's output.
    #[arg(long, default_value = "SELLER_SECRET")]
    payer: String,
    /// File to which the deployment record is written. A valid record for the same deployment is left unchanged.
    #[arg(long, default_value = "escrow.json")]
    out: PathBuf,
}

/// Arguments of `show`.
#[derive(Args)]
pub struct ShowArguments {
    #[command(flatten)]
    provider: Provider,
    /// Path of the deployment record to show.
    #[arg(default_value = "escrow.json")]
    record: PathBuf,
}

pub(super) fn run(arguments: &DeployArguments) -> Result<ExitCode, Box<dyn Error>> {
    let admins = match arguments.admins.as_slice() {
        [] => vec![secret::key("ARBITER_SECRET")?.key_hash().to_string()],
        admins => admins.to_vec(),
    };
    let parameters = derive::parameters(arguments.required, &admins, arguments.cooldown)?;
    let blueprint = arguments.blueprint.load()?;
    let script = blueprint.apply(&parameters)?;
    if let Some(record) = kept(arguments, &script, &parameters)? {
        println!("deployed already");
        print(&record);
        return Ok(ExitCode::SUCCESS);
    }
    let record = Deployment { blueprint_sha256: Some(blueprint.sha256()), ..publish(arguments, script, parameters)? };
    fs::write(&arguments.out, serde_json::to_string(&record)?)?;
    print(&record);
    println!("record   {}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(arguments: &ShowArguments) -> Result<ExitCode, Box<dyn Error>> {
    let record = read(&arguments.record)?;
    print(&record);
    if holds(&arguments.provider, &record)? {
        println!("chain    the script is there");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("chain    no unspent output with this script at {}", record.reference_script);
        Ok(ExitCode::FAILURE)
    }
}

pub(super) fn read(path: &Path) -> Result<Deployment, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Returns the existing record, or `None` if it is for another deployment or the script is no longer on the chain.
fn kept(
    arguments: &DeployArguments,
    script: &Script,
    parameters: &Parameters,
) -> Result<Option<Deployment>, Box<dyn Error>> {
    if !arguments.out.exists() {
        return Ok(None);
    }
    let record = read(&arguments.out)?;
    let same = record.script_hash == script.hash && record.parameters == *parameters;
    Ok(if same && holds(&arguments.provider, &record)? { Some(record) } else { None })
}

fn holds(provider: &Provider, record: &Deployment) -> Result<bool, Box<dyn Error>> {
    let outputs = provider.outputs_of(&record.reference_script.tx)?.unwrap_or_default();
    let carries = outputs.iter().any(|output| {
        output.utxo.reference == record.reference_script
            && output.utxo.reference_script == Some(record.script_hash)
            && output.spent_by.is_none()
    });
    Ok(carries)
}

fn publish(arguments: &DeployArguments, script: Script, parameters: Parameters) -> Result<Deployment, Box<dyn Error>> {
    let key = secret::key(&arguments.payer)?;
    let payer = key.enterprise_address();
    let live = arguments.provider.protocol_parameters()?;
    let tip = arguments.provider.tip()?;
    let bytes = u32::try_from(script.cbor.len())?;
    // At the script's own address, where it stays: the contract releases no output without a datum. The payer's wallet
    // would spend it.
    let home = PaymentAddress::script(script.hash);
    let mut output = NewOutput { script: Some(script.cbor), ..NewOutput::pay(home, cardano::Lovelace::ZERO) };
    output.value.lovelace = output.min_lovelace(&live)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    let slot = SlotConfig::PREPROD.slot_at(u64::try_from(now)?).unwrap_or(0).max(tip.slot);
    let plan = TxPlan {
        outputs: vec![output],
        validity: Validity { from: None, until: slot.saturating_add(VALID_SECONDS) },
        ..TxPlan::default()
    };
    let utxos = arguments.provider.utxos_at(&payer.to_string())?;
    let reserved = std::collections::BTreeSet::new();
    let wallet = Wallet { address: payer, utxos: &utxos, reserved: &reserved };
    let built =
        build(&plan, &wallet, &live).map_err(|error| format!("{error} (the payer is {payer})"))?.sign(&[&key])?;
    arguments.provider.submit(&built.cbor)?;
    arguments.provider.wait_for(&built.facts.tx_id, VALID_SECONDS)?;
    Ok(Deployment {
        script_hash: script.hash,
        parameters,
        reference_script: TxRef { tx: built.facts.tx_id, index: 0 },
        reference_script_bytes: bytes,
        blueprint_sha256: None,
    })
}

fn print(record: &Deployment) {
    println!("hash     {}", record.script_hash);
    println!("address  {}", record.address());
    if let Some(digest) = record.blueprint_sha256 {
        println!("contract {digest}");
    }
    println!("script   {} ({} bytes)", record.reference_script, record.reference_script_bytes);
    println!("admins   {} of {:?}", record.parameters.required_admins, record.parameters.admin_vkeys);
    println!("cooldown {} ms", record.parameters.cooldown_period);
}
