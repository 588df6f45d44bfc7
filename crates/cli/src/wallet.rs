//! `surety wallet` and `surety fund`.

use std::io::Read;

use cardano::Lovelace;
use clap::Subcommand;
use market::DeliveryMode;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    Shop,
    failure::Failure,
    phrase::{Account, Phrase, Position},
    service::{Ask, Service},
};

/// Maximum size of a recovery phrase in bytes: enough for 24 words of up to 8 letters.
const MAX_PHRASE: u64 = 1024;
/// Number of consecutive unused addresses after which wallets stop looking for used ones (BIP-44).
const GAP: u32 = 20;
/// Maximum number of addresses that are examined for each role (receiving, change). No real wallet uses as many.
const MAX_INDEX: u32 = 10_000;
/// Minimum price of an instant sale. The ledger permits no smaller output.
const MIN_INSTANT: Lovelace = Lovelace::from_ada(1);
/// Minimum price of a protected sale, because a lower one does not cover the fees of the escrow's transactions.
const MIN_PROTECTED: Lovelace = Lovelace::from_ada(5);

/// Subcommands of `wallet`.
#[derive(Subcommand)]
pub enum WalletCommand {
    /// Create a wallet. Prints its 24 words once, to be written down; they control the money.
    New,
    /// Import another wallet's recovery phrase from standard input, with every used address of its first account.
    Import,
    /// Print the words, to import them into another wallet.
    Export,
    /// Print the address and the balance, and look for other used addresses of the account.
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

/// Parses an amount of at least 1 ADA. The ledger permits no smaller output.
pub fn at_least_one_ada(text: &str) -> Result<Lovelace, &'static str> {
    let lovelace = ada(text)?;
    if lovelace < Lovelace::from_ada(1) {
        Err("at least 1 ADA: the ledger makes no output of less")
    } else {
        Ok(lovelace)
    }
}

/// Checks that a price is high enough for each mode in which buyers may pay.
///
/// # Errors
/// Returns an error that names the minimum price.
pub fn fits(price: Lovelace, modes: &[DeliveryMode]) -> Result<(), Failure> {
    if price < MIN_INSTANT {
        return Err(Failure::Usage(format!("--price: at least {}", MIN_INSTANT.display_tada())));
    }
    if price < MIN_PROTECTED && modes.contains(&DeliveryMode::Protected) {
        return Err(Failure::Usage(format!(
            "--price: at least {} if protection is offered, because of its fees; with --modes instant the price may be lower",
            MIN_PROTECTED.display_tada()
        )));
    }
    Ok(())
}

/// Runs a subcommand of `wallet`.
pub fn run(shop: &Shop, command: &WalletCommand) -> Result<(), Failure> {
    match command {
        WalletCommand::New => {
            let phrase = Phrase::random()?;
            shop.home.keep(&phrase)?;
            shop.tell.progress("write these words down: they are the wallet, here and in other wallets of Cardano");
            shop.tell.progress(&phrase.words());
            shop.tell.progress(&format!("they are in {}, too", shop.home.folder.display()));
            let address = shop.home.keys()?.address();
            shop.tell.result(&json!({ "address": address, "folder": shop.home.folder }), &address.to_string())
        }
        WalletCommand::Import => {
            let mut text = Zeroizing::new(String::new());
            let read = std::io::stdin().take(MAX_PHRASE).read_to_string(&mut text);
            read.map_err(|error| Failure::Usage(format!("cannot read the words: {error}")))?;
            let phrase = Phrase::read(&text).map_err(|why| Failure::Usage(why.to_string()))?;
            shop.home.keep(&phrase)?;
            match show(shop, &phrase) {
                Err(Failure::Unreachable(why)) => {
                    shop.tell.progress(&why);
                    let keys = shop.home.keys()?;
                    let known = match keys.addresses().len() {
                        1 => "its first address".to_owned(),
                        count => format!("the {count} used addresses that were found"),
                    };
                    shop.tell.progress(&format!(
                        "the wallet is kept with {known}; `surety wallet show` looks again, and prints their balances"
                    ));
                    let address = keys.address();
                    shop.tell.result(&json!({ "address": address, "folder": shop.home.folder }), &address.to_string())
                }
                shown => shown,
            }
        }
        WalletCommand::Export => {
            let words = shop.home.phrase()?.words();
            shop.tell.result(&json!({ "secret": words.as_str() }), &words)
        }
        WalletCommand::Show => show(shop, &shop.home.phrase()?),
    }
}

/// Looks for used addresses of the account, stores their positions, and prints the balance of each.
fn show(shop: &Shop, phrase: &Phrase) -> Result<(), Failure> {
    let account = phrase.account();
    let used = discover(shop, &account)?;
    shop.home.keep_addresses(&used)?;
    let (mut sum, mut found, mut lines) = (Lovelace::ZERO, vec![], vec![]);
    for position in &used {
        let address = account.key(*position)?.address();
        let utxos = shop.chain.spendable_at(&address)?;
        let holds: Lovelace = utxos.iter().map(|utxo| utxo.value.lovelace).sum();
        sum = sum.checked_add(holds).unwrap_or(Lovelace::MAX);
        lines.push(format!("{position}  {address}  {}", holds.display_tada()));
        found.push(json!({ "path": position.to_string(), "address": address, "balanceLovelace": holds }));
    }
    let address = account.key(Position::FIRST)?.address();
    let several = lines.len() > 1;
    let mut words = format!("{address}\n{}", sum.display_tada());
    if several {
        words = format!(
            "{words} at {} used addresses of the account, all of which are spent from:\n{}",
            lines.len(),
            lines.join("\n")
        );
    }
    let told = json!({ "address": address, "balanceLovelace": sum, "addresses": found, "folder": shop.home.folder });
    shop.tell.result(&told, &words)
}

/// Finds the used addresses of an account as wallets do: for each role (receiving, change), examines addresses until
/// twenty in a row are unused (CIP-1852, BIP-44). The first address is always included.
fn discover(shop: &Shop, account: &Account) -> Result<Vec<Position>, Failure> {
    shop.tell.progress("looking for used addresses of the account");
    let mut used = vec![Position::FIRST];
    for role in [0, 1] {
        let mut unused = 0;
        for index in 0..MAX_INDEX {
            let position = Position { role, index };
            if shop.chain.provider.is_used(&account.key(position)?.address().to_string())? {
                used.push(position);
                unused = 0;
            } else {
                unused = u32::saturating_add(unused, 1);
            }
            if unused == GAP {
                break;
            }
        }
    }
    used.dedup();
    Ok(used)
}

/// Requests test ADA from a local ledger's faucet.
pub fn fund(shop: &Shop, lovelace: Lovelace) -> Result<(), Failure> {
    let address = shop.home.keys()?.address();
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
