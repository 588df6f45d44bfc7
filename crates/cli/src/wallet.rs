//! `surety wallet`, `surety fund`

use std::str::FromStr;

use cardano::{Address, Lovelace, keys::SigningKey};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{Shop, chain::total, failure::Failure};

/// What to do with the wallet.
#[derive(Subcommand)]
pub enum WalletCommand {
    /// Make a key from the system's randomness. Whoever has the file has the money: keep a copy of it.
    New,
    /// Print the address, and what is there.
    Show,
}

/// How much.
#[derive(Args)]
pub struct FundArguments {
    /// In ADA.
    #[arg(default_value = "50")]
    ada: Ada,
}

/// An amount as people write it: 2 or 2.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ada(pub Lovelace);

impl FromStr for Ada {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHY: &str = "an amount in ADA is a number with at most six decimals: 2 or 2.5";
        let (whole, parts) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(parts) || parts.len() > 6 {
            return Err(WHY);
        }
        format!("{whole}{parts:0<6}").parse().map(Self).map_err(|_| WHY)
    }
}

/// Runs one of them.
pub fn run(shop: &Shop, command: &WalletCommand) -> Result<(), Failure> {
    match command {
        WalletCommand::New => {
            let key = shop.home.create()?;
            let address = key.enterprise_address();
            shop.tell.progress(&format!("the key is in {}: keep a copy of it", shop.home.folder().display()));
            shop.tell.result(&json!({ "address": address, "folder": shop.home.folder() }), &address.to_string())
        }
        WalletCommand::Show => {
            let address = shop.home.key()?.enterprise_address();
            let holds = total(&shop.chain.spendable(&address)?);
            let words = format!("{address}\n{}", holds.display_tada());
            shop.tell.result(&json!({ "address": address, "balanceLovelace": holds }), &words)
        }
    }
}

/// Asks a local ledger's faucet.
pub fn fund(shop: &Shop, FundArguments { ada: Ada(lovelace) }: &FundArguments) -> Result<(), Failure> {
    let address = shop.home.key()?.enterprise_address();
    let faucet = shop.chain.faucet(&address)?;
    let body = json!({ "address": address, "lovelace": lovelace });
    let sent = ureq::post(&faucet)
        .config()
        .http_status_as_error(false)
        .build()
        .header("content-type", "application/json")
        .send(body.to_string().as_bytes());
    let mut answer = sent.map_err(|error| {
        Failure::Unreachable(format!(
            "the local ledger does not answer at {faucet} ({error}): start it with `make dev`, or name it in BLOCKFROST_URL"
        ))
    })?;
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    if answer.status() != 200 {
        let why = told.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(Failure::Refused(format!("the faucet says no: {}", crate::tell::plain(why))));
    }
    let words = format!("{} sent to {address}", lovelace.display_tada());
    shop.tell.result(&json!({ "address": address, "lovelace": lovelace, "txHash": told.get("txHash") }), &words)
}

/// The wallet's key and address.
pub fn signer(shop: &Shop) -> Result<(SigningKey, Address), Failure> {
    let key = shop.home.key()?;
    let address = key.enterprise_address();
    Ok((key, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let lovelace = |text: &str| text.parse::<Ada>().map(|Ada(lovelace)| lovelace.get());
        assert_eq!(lovelace("2"), Ok(2_000_000));
        assert_eq!(lovelace("2.5"), Ok(2_500_000));
        assert_eq!(lovelace("0.000001"), Ok(1));
        for bad in ["", ".5", "2.", "-1", "1e3", "1.0000001", "99999999999999999999", "2,5"] {
            assert!(lovelace(bad).is_err(), "{bad}");
        }
    }
}
