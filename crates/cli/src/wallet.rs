//! `surety wallet` and `surety fund`.

use std::io::Read;

use cardano::{Lovelace, keys::SigningKey};
use clap::Subcommand;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    Shop,
    failure::Failure,
    phrase::Phrase,
    service::{Ask, Service},
};

/// Maximum bytes of a phrase: 24 words of up to 8 letters.
const MAX_PHRASE: u64 = 1024;

/// Subcommands of `wallet`.
#[derive(Subcommand)]
pub enum WalletCommand {
    /// Create a wallet. Prints its 24 words once, to be written down; they control the money.
    New,
    /// Import another wallet's recovery phrase from standard input. Its first account is used.
    Import,
    /// Print the words, to import them into another wallet.
    Export,
    /// Print the address and its balance.
    Show,
}

/// Parses an amount in ADA: 2 or 2.5.
pub fn ada(text: &str) -> Result<Lovelace, &'static str> {
    const WHY: &str = "an amount in ADA is a number with at most six decimals: 2 or 2.5";
    let (whole, parts) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(parts) || parts.len() > 6 {
        return Err(WHY);
    }
    format!("{whole}{parts:0<6}").parse().map_err(|_| WHY)
}

/// Runs a subcommand.
pub fn run(shop: &Shop, command: &WalletCommand) -> Result<(), Failure> {
    match command {
        WalletCommand::New => {
            let phrase = Phrase::random()?;
            let key = shop.home.keep(&phrase)?;
            shop.tell.progress("write these words down: they are the wallet, here and in other wallets of Cardano");
            shop.tell.progress(&phrase.words());
            shop.tell.progress(&format!("they are in {}, too", shop.home.folder.display()));
            kept(shop, &key)
        }
        WalletCommand::Import => {
            let mut text = Zeroizing::new(String::new());
            let read = std::io::stdin().take(MAX_PHRASE).read_to_string(&mut text);
            read.map_err(|error| Failure::Usage(format!("cannot read the words: {error}")))?;
            let phrase = Phrase::read(text.trim()).ok_or_else(|| {
                Failure::Usage("not a recovery phrase: 12 to 24 English words on standard input are expected".into())
            })?;
            kept(shop, &shop.home.keep(&phrase)?)
        }
        WalletCommand::Export => {
            let words = shop.home.phrase()?.words();
            shop.tell.result(&json!({ "secret": words.as_str() }), &words)
        }
        WalletCommand::Show => {
            let address = shop.home.key()?.address();
            let holds: Lovelace = shop.chain.spendable(&address)?.iter().map(|utxo| utxo.value.lovelace).sum();
            let words = format!("{address}\n{}", holds.display_tada());
            shop.tell.result(&json!({ "address": address, "balanceLovelace": holds }), &words)
        }
    }
}

fn kept(shop: &Shop, key: &SigningKey) -> Result<(), Failure> {
    let address = key.address();
    shop.tell.result(&json!({ "address": address, "folder": shop.home.folder }), &address.to_string())
}

/// Requests test ADA from a local ledger's faucet.
pub fn fund(shop: &Shop, lovelace: Lovelace) -> Result<(), Failure> {
    let address = shop.home.key()?.address();
    let ledger = shop.chain.local_ledger(&address)?;
    let body = json!({ "address": address, "lovelace": lovelace });
    let answer = Service::at(ledger)?.ask("POST", "/control/faucet", Ask::json(&body)).map_err(|_| {
        Failure::Unreachable(format!(
            "the local ledger does not answer at {ledger}: start it with `make dev`, or name it in BLOCKFROST_URL"
        ))
    })?;
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status != 200 {
        let why = told.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(Failure::Refused(format!("the faucet refused: {}", crate::tell::plain(why))));
    }
    let words = format!("{} sent to {address}", lovelace.display_tada());
    shop.tell.result(&json!({ "address": address, "lovelace": lovelace, "txHash": told.get("txHash") }), &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let lovelace = |text: &str| ada(text).map(Lovelace::get);
        assert_eq!(lovelace("2"), Ok(2_000_000));
        assert_eq!(lovelace("2.5"), Ok(2_500_000));
        assert_eq!(lovelace("0.000001"), Ok(1));
        for bad in ["", ".5", "2.", "-1", "1e3", "1.0000001", "99999999999999999999", "2,5"] {
            assert!(lovelace(bad).is_err(), "{bad}");
        }
    }
}
