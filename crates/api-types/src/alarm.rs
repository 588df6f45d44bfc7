//! Alarms: conditions in which money or a seller's score is about to be lost through a fault on the operator's side.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition that the operator must act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Alarm {
    /// Kind of the condition, for programs.
    pub name: AlarmName,
    /// Description of the condition, with the purchase, address or number concerned.
    pub message: String,
    /// Advice to the operator: how to end the condition.
    pub advice: String,
}

impl Alarm {
    /// Creates an alarm with the advice for its kind.
    pub fn new(name: AlarmName, message: impl Into<String>) -> Self {
        Self { name, message: message.into(), advice: name.advice().to_owned() }
    }
}

/// Declares the kinds of alarms, each with its advice to the operator, and a list of all kinds for tests.
macro_rules! alarms {
    ($($(#[$doc:meta])+ $name:ident => $advice:literal,)+) => {
        /// The kind of an alarm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum AlarmName {
            $($(#[$doc])+ $name,)+
        }

        impl AlarmName {
            /// List of all kinds of alarms.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns what the operator should do about this kind of alarm.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self {
                    $(Self::$name => $advice,)+
                }
            }
        }

        impl fmt::Display for AlarmName {
            /// Writes the kind's name as it is in JSON, without quotes.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    };
}

alarms! {
    /// No run of the watcher (tick) was completed in the last five minutes.
    NoTick => "The watcher is not deployed, its cron does not run, or it is paused. Look at make tail, then run make deploy \
        or make resume. Until it runs again, escrows can miss their deadlines.",
    /// The last run of the watcher (tick) ended early, because of an error.
    TickFailed => "The provider or the database failed, for the reason given. The watcher tries again every minute.",
    /// A setting of the watcher is missing or invalid.
    InvalidSetting => "Correct the named setting in .deploy/production.env or wrangler.toml, and run make deploy.",
    /// The provider refuses the project id.
    ProviderRefusesProject => "Put a valid BLOCKFROST_PROJECT_ID (or BLOCKFROST_PROJECT_ID_WATCHER) for preprod into \
        .deploy/production.env, and run make deploy. Until then, no payment can be made and no buyer protected.",
    /// The daily quota of the project at the chain provider is used up.
    ProviderQuotaUsedUp => "Book a larger plan at the provider, or give the watcher a project of its own \
        (BLOCKFROST_PROJECT_ID_WATCHER). The quota is renewed at midnight UTC; escrows can miss deadlines before that.",
    /// The newest known block is too old to rely on.
    OldBlock => "The provider lags or does not answer, or no tick ran. Until a newer block is known, no protected sale is offered.",
    /// The platform's wallet is nearly empty.
    PlatformWalletLow => "Send tADA to the address, from which the fees and the collateral of all actions are paid.",
    /// The arbiter's wallet is nearly empty.
    ArbiterWalletLow => "Send tADA to the address, from which the fees and the collateral of awards are paid.",
    /// The watcher has no seller's key, so it cannot act for the platform's sales.
    SellerSecretMissing => "Give the watcher the API's SELLER_SECRET. Without it, nothing is posted, collected, refunded \
        or paid out.",
    /// The watcher has no deployment record of an escrow contract.
    DeploymentMissing => "Give the watcher the API's ESCROW_DEPLOYMENT, for example by running make deploy.",
    /// An open escrow is at a contract address that the watcher is not configured for.
    OtherContract => "Give the watcher the API's ESCROW_DEPLOYMENT, for example by running make deploy.",
    /// An open escrow has a seller whose key the watcher does not have.
    OtherSeller => "Give the watcher the API's SELLER_SECRET, for example by running make deploy.",
    /// Escrows are open although the watcher is configured not to act as seller.
    SellerAgentOff => "Remove SELLER_AGENT from the watcher's settings, unless another program posts results and \
        collects. Otherwise results miss their deadlines and creators are not paid.",
    /// The watcher lacks the master secret of a wallet with an open escrow.
    MasterSecretMissing => "Give the watcher the named master secret, with the API's value. Until then it cannot get \
        money back for this wallet.",
    /// The arbiter has not decided a dispute in time.
    DisputeLate => "ARBITER_TOKEN differs between watcher and arbiter, or the arbiter fails; its log (make tail) says why.",
    /// An open escrow has this platform as seller, but belongs to no known purchase.
    UnknownEscrow => "Its payer has not presented it, or the database was restored. It becomes a purchase when the payer \
        presents it; otherwise its buyer can take the money back.",
    /// The deadline for the result of an escrow is near, and the seller has not posted the result.
    ResultLate => "Remove the given cause, such as missing content, an empty wallet, or a provider that does not answer.",
    /// The deadline for the result of an escrow has passed, and the seller did not post the result.
    ResultMissed => "The seller's score falls through a fault of this service. Look for the cause in earlier notes \
        (make tail).",
    /// A transaction that spent an escrow cannot be decoded.
    UnreadableSpend => "The ledger accepted a transaction that this release cannot decode, so the watcher does not act on \
        that escrow. Look the transaction up, act by hand before the deadlines (cargo xtask escrow act), and upgrade.",
    /// The payout to a creator failed.
    SellerUnpaid => "Send tADA to the platform's wallet (cargo xtask address SELLER_SECRET). The payout is retried.",
    /// The database was restored to an earlier state.
    DatabaseRestored => "If the restore was intended, do nothing: the alarm ends when every wallet has been read. Otherwise \
        find out who restored it (Time Travel in Cloudflare's dashboard); see docs/deploying.md, \"A restored database\".",
    /// The database is almost full.
    DatabaseFilling => "Make room, or bind a bucket (docs/operations.md, \"A full database\"). From 80 % on, new \
        listings and new accounts are refused.",
    /// The chain provider serves a chain that is not preprod.
    OtherChain => "BLOCKFROST_URL names another network. The watcher does nothing until it shows preprod again.",
    /// The newest block's time is far ahead of the clock.
    FutureBlock => "The provider or the clock is wrong. The watcher does nothing until they agree.",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alarm_says_in_a_sentence_what_to_do() {
        for name in AlarmName::ALL {
            let advice = name.advice();
            assert!(advice.ends_with('.') && !advice.contains("  "), "{name:?}: {advice}");
        }
    }
}
