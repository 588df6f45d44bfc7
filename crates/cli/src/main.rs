//! `surety`: a client of the marketplace for the shell, with its own key.
//!
//! ```text
//! main ──> a command: catalogue, selling, buying, redelivery, acting, account, events, webhook, wallet
//!            ├── evidence  a purchase's public facts, for anyone to check
//!            ├── doctor    probes a deployment with the requests of common clients
//!            ├── service   the API, which drafts transactions
//!            ├── chain     the wallet's outputs, from a provider independent of the service
//!            ├── verify    checks a draft by both before it is signed
//!            └── home      key, session, and payments with an unknown outcome
//! ```

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on people's own machines")]

mod account;
mod acting;
mod buying;
mod catalogue;
mod chain;
mod doctor;
mod events;
mod evidence;
mod failure;
mod home;
mod keys;
mod phrase;
mod proof;
mod redelivery;
mod selling;
mod service;
mod settling;
mod tell;
mod verify;
mod wallet;
mod webhook;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use api_types::{BuyerAction, MAX_CONTENT_BYTES};
use cardano::{Lovelace, slots::Millis};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use market::ListingId;

use crate::{chain::ChainClient, failure::Failure, home::Home, service::Service, tell::Tell};

const AFTER_HELP: &str = "\
The first purchase on a local shop (`make dev` in another terminal):
  surety wallet new                 makes a key in ~/.surety/default, readable by you alone
  surety fund 50                    test money of the local ledger
  surety browse                     what is for sale
  surety buy LISTING > prompt.md    pays the seller; with --protected into the escrow
  surety evidence PURCHASE --out e.json; surety verify e.json --content prompt.md
                                    what anyone can check of it

Results go to stdout, progress and errors to stderr; --json makes both JSON.
Exit codes: 0 done; 1 refused; 2 cannot be asked like this; 3 no answer, try again; 4 not known yet: the same command
again goes on with the same payment; 5 not signed, because the draft is not what was asked for; 6 evidence of which
nobody proves some part.
In this repository: `cargo surety COMMAND`.";

/// Buys and sells prompts for tADA on Cardano's preprod network, or on a local ledger.
#[derive(Parser)]
#[command(name = "surety", version)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Arguments of all commands.
#[derive(Args)]
struct Common {
    /// The service's address.
    #[arg(long, global = true, env = "SURETY_API", default_value = "http://127.0.0.1:8787")]
    api: String,
    /// A Blockfrost API of the chain, with `/api/v0`. The default is the local ledger for a service on this machine,
    /// and Blockfrost's own for preprod otherwise (project id in BLOCKFROST_PROJECT_ID).
    #[arg(long, global = true, env = "BLOCKFROST_URL")]
    blockfrost: Option<String>,
    /// The wallet to use: a folder in ~/.surety.
    #[arg(long, global = true, env = "SURETY_WALLET", default_value = "default")]
    wallet: String,
    /// The folder of all wallets, instead of ~/.surety.
    #[arg(long, global = true, env = "SURETY_HOME")]
    home: Option<PathBuf>,
    /// Print results and errors as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Create a wallet, or show its address and its balance.
    #[command(subcommand)]
    Wallet(wallet::WalletCommand),
    /// Get test ADA from a local ledger.
    Fund {
        /// Amount in ADA: at least 1, because the ledger permits no smaller output.
        #[arg(default_value = "50", value_parser = wallet::at_least_one_ada)]
        ada: Lovelace,
    },
    /// List a text for sale.
    Sell(selling::SellArguments),
    /// Edit the title, description, price, category or preview of your listing.
    Edit(selling::EditArguments),
    /// List what is for sale.
    Browse(catalogue::BrowseArguments),
    /// Show a listing.
    Show {
        /// The listing's id: lst_...
        #[arg(value_parser = catalogue::listing_id)]
        listing: ListingId,
    },
    /// Buy a listing and print its content; nothing is paid twice.
    Buy(buying::BuyArguments),
    /// Print a purchase's content again, in the session of the account that bought it.
    Read(acting::ReadArguments),
    /// Prove by a signature that the wallet bought a listing, and print the content again.
    Prove(redelivery::ProveArguments),
    /// Show the state of a purchase and the possible actions.
    Status(acting::PurchaseArgument),
    /// Request a refund of a protected purchase, before its proof of delivery.
    RequestRefund(acting::PurchaseArgument),
    /// Dispute a delivered purchase, so that the arbiter decides.
    Dispute(acting::DisputeArguments),
    /// Take the money back, once the contract allows it.
    Refund(acting::PurchaseArgument),
    /// End a dispute: release the money to the seller.
    Release(acting::PurchaseArgument),
    /// Report whether the delivered content is the listed one.
    Verdict(acting::VerdictArguments),
    /// Collect the publicly verifiable facts of a purchase in one file, without the content.
    Evidence(evidence::EvidenceArguments),
    /// Check an evidence file, and say who proves each part: the chain, the service's key, or nobody.
    Verify(evidence::VerifyArguments),
    /// Sign in with the wallet.
    SignIn,
    /// End the session.
    SignOut,
    /// Show the account: Surety balance, limits, listings.
    Account,
    /// List the account's purchases: those that its wallet paid for, and those from its Surety balance.
    Purchases,
    /// Show the limits for purchases from the Surety balance and the rules for agents, or set them.
    Limits(account::LimitsArguments),
    /// Set the name that is shown with your listings, beside your address.
    Name {
        /// The name, 1 to 40 characters. An empty text removes it.
        name: String,
    },
    /// Show the agents that may buy from the Surety balance, remove one, or pause all of them.
    Agents {
        #[command(subcommand)]
        command: Option<account::AgentsCommand>,
    },
    /// Show the purchases that agents ask to have approved.
    Approvals,
    /// Let an agent make a purchase that it asked for, once, within an hour.
    Approve {
        /// The request's id, as `approvals` and the agent show it.
        id: String,
    },
    /// Refuse a purchase that an agent asked for.
    Decline {
        /// The request's id.
        id: String,
    },
    /// List what happened: sales, deliveries, disputes, refunds, payouts, and questions of agents.
    Events(events::EventsArguments),
    /// Show the address to which events are sent, or change it.
    Webhook {
        #[command(subcommand)]
        command: Option<webhook::WebhookCommand>,
    },
    /// Send the Surety balance to the wallet that signed in. About 2 ADA stay for fees.
    Withdraw,
    /// Check which clients and wallets a deployment serves; exit code 1 if some are not served.
    Doctor {
        /// The deployment's address; by default that of --api.
        url: Option<String>,
    },
}

/// Context of every command: the service, the chain, the wallet's folder and the output.
struct Shop {
    service: Service,
    chain: ChainClient,
    home: Home,
    tell: Tell,
}

impl Shop {
    fn open(common: &Common) -> Result<Self, Failure> {
        let service = Service::at(&common.api)?;
        let chain = ChainClient::at(common.blockfrost.as_deref(), service.local)?;
        let home = Home::new(common.home.as_deref(), &common.wallet)?;
        Ok(Self { service, chain, home, tell: Tell { json: common.json } })
    }

    fn run(&self, command: &Command) -> Result<(), Failure> {
        match command {
            Command::Wallet(command) => wallet::run(self, command),
            Command::Fund { ada } => wallet::fund(self, *ada),
            Command::Sell(arguments) => selling::run(self, arguments),
            Command::Edit(arguments) => selling::edit(self, arguments),
            Command::Browse(arguments) => catalogue::browse(self, arguments),
            Command::Show { listing } => catalogue::show(self, listing),
            Command::Buy(arguments) => buying::run(self, arguments),
            Command::Read(arguments) => acting::read(self, arguments),
            Command::Prove(arguments) => redelivery::run(self, arguments),
            Command::Status(purchase) => acting::status(self, purchase),
            Command::RequestRefund(purchase) => acting::act(self, purchase, BuyerAction::RequestRefund),
            Command::Dispute(arguments) => acting::dispute(self, arguments),
            Command::Refund(purchase) => acting::act(self, purchase, BuyerAction::TakeRefund),
            Command::Release(purchase) => acting::act(self, purchase, BuyerAction::Release),
            Command::Verdict(arguments) => acting::verdict(self, arguments),
            Command::Evidence(arguments) => evidence::collect(self, arguments),
            Command::Verify(arguments) => evidence::verify(self, arguments),
            Command::SignIn => account::sign_in(self),
            Command::SignOut => account::sign_out(self),
            Command::Account => account::show(self),
            Command::Purchases => account::purchases(self),
            Command::Limits(arguments) => account::limits(self, arguments),
            Command::Name { name } => account::set_name(self, name),
            Command::Agents { command } => account::agents(self, command.as_ref()),
            Command::Approvals => account::approvals(self),
            Command::Approve { id } => account::answer(self, id, api_types::Answer::Approve),
            Command::Decline { id } => account::answer(self, id, api_types::Answer::Decline),
            Command::Events(arguments) => events::run(self, arguments),
            Command::Webhook { command } => webhook::run(self, command.as_ref()),
            Command::Withdraw => account::withdraw(self),
            Command::Doctor { url } => doctor::run(url.as_deref().unwrap_or(self.service.base()), &self.tell),
        }
    }
}

/// Returns the time of the wall clock, in POSIX ms.
fn now_ms() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// Returns 32 random bytes from the operating system.
///
/// # Errors
/// Returns an error if the operating system provides no randomness.
fn random() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Refused(format!("no randomness: {error}")))?;
    Ok(bytes)
}

/// Reads a file that the user named, up to the maximum size of a listing's content.
///
/// # Errors
/// Returns an error if the file cannot be read or exceeds the maximum size.
fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
    let mut bytes = vec![];
    let most = MAX_CONTENT_BYTES as u64;
    File::open(path).map_err(unreadable)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_CONTENT_BYTES {
        return Err(Failure::Usage(format!("{} is longer than 1 MiB", path.display())));
    }
    Ok(bytes)
}

/// Prints the help, or the error in the arguments. The error is printed as JSON if the arguments ask for JSON.
fn unparsed(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args().any(|argument| argument == "--json") {
        return Tell { json: true }.failure(&Failure::Usage(error.to_string().trim_end().to_owned()));
    }
    if error.print().is_ok() && !error.use_stderr() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

fn main() -> ExitCode {
    // Help names the commands as they are called here.
    let program = tell::program();
    let help = AFTER_HELP.replace("  surety ", &format!("  {program} "));
    let typed = Cli::command().bin_name(program).after_help(help).try_get_matches();
    let Cli { common, command } = match typed.and_then(|typed| Cli::from_arg_matches(&typed)) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    tell::on_interruption(Tell { json: common.json });
    match Shop::open(&common).and_then(|shop| shop.run(&command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Tell { json: common.json }.failure(&failure),
    }
}
