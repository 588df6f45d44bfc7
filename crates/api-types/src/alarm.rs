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
    /// What the operator should do to end the condition.
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
    /// The watcher has not completed a tick for five minutes.
    NoTick => "The watcher is not deployed, its cron does not run, or it is paused: see make tail, then make deploy or \
        make resume. Deadlines pass meanwhile.",
    /// The watcher's last tick ended early, because of an error.
    TickFailed => "The provider or the database: the reason stands with it. The watcher tries again every minute.",
    /// A setting of the watcher is missing or invalid.
    InvalidSetting => "Correct the setting that is named, in .deploy/production.env or wrangler.toml, and make deploy.",
    /// The provider refuses the project id.
    ProviderRefusesProject => "Put a valid BLOCKFROST_PROJECT_ID (or BLOCKFROST_PROJECT_ID_WATCHER) for preprod into \
        .deploy/production.env, and make deploy. Nothing can be paid or protected meanwhile.",
    /// The daily quota of the project at the chain provider is used up.
    ProviderQuotaUsedUp => "Take a larger plan at the provider, or give the watcher a project of its own \
        (BLOCKFROST_PROJECT_ID_WATCHER): the quota is renewed at midnight UTC, and deadlines pass before that.",
    /// The newest known block is too old to rely on.
    OldBlock => "The provider is behind or away, or no tick ran. No protected sale is quoted meanwhile.",
    /// The platform's wallet is nearly empty.
    PlatformWalletLow => "Send tADA to the address: fees and collateral of all actions are paid from there.",
    /// The arbiter's wallet is nearly empty.
    ArbiterWalletLow => "Send tADA to the address: fees and collateral of awards are paid from there.",
    /// The watcher has no seller's key, so it cannot act for the platform's sales.
    SellerSecretMissing => "Give the watcher the API's SELLER_SECRET: nothing is posted, collected, refunded or paid \
        without it.",
    /// The watcher has no deployment record of an escrow contract.
    DeploymentMissing => "Give the watcher the API's ESCROW_DEPLOYMENT: make deploy does.",
    /// An open escrow is at the address of another contract than the watcher's.
    OtherContract => "Give the watcher the API's ESCROW_DEPLOYMENT: make deploy does.",
    /// An open escrow has another seller than the watcher's.
    OtherSeller => "Give the watcher the API's SELLER_SECRET: make deploy does.",
    /// Escrows are open although the watcher is configured not to act as seller.
    SellerAgentOff => "Take SELLER_AGENT out of the watcher's settings, unless another program posts results and \
        collects: without one, results miss their deadline and creators are not paid.",
    /// The watcher lacks the master secret of a wallet with an open escrow.
    MasterSecretMissing => "Give the watcher the master secret that is named, with the API's value: until then it can \
        take no money back for this wallet.",
    /// The arbiter has not decided a dispute in time.
    DisputeLate => "ARBITER_TOKEN differs between watcher and arbiter, or the arbiter fails: its log (make tail) says why.",
    /// An open escrow has this platform as seller, but belongs to no known purchase.
    UnknownEscrow => "Its payer has not presented it, or the database was restored. It becomes a purchase when the payer \
        presents it; otherwise its buyer can take the money back.",
    /// The seller has not posted the result of an escrow, and its deadline is near.
    ResultLate => "The reason stands with it: content missing, wallet empty, provider away.",
    /// The seller has not posted the result of an escrow before the deadline.
    ResultMissed => "The seller's score falls by a fault of this service: look for the reason in earlier notes \
        (make tail).",
    /// A transaction that spent an escrow cannot be decoded.
    UnreadableSpend => "The ledger accepts what this release cannot read, and nothing is done on that escrow. Look the \
        transaction up, settle by hand before the deadlines (cargo xtask escrow act), and upgrade.",
    /// The payout to a creator failed.
    SellerUnpaid => "Fund the platform's wallet (cargo xtask address SELLER_SECRET): the payout is tried again.",
    /// The database was restored to an earlier state.
    DatabaseRestored => "Nothing, if somebody meant to restore it: the alarm ends when every wallet was read. Otherwise \
        find out who did (Time Travel in Cloudflare's dashboard): docs/deploying.md, \"A restored database\".",
    /// The database is almost full.
    DatabaseFilling => "Make room, or bind a bucket: docs/operations.md, \"A full database\". From 80 % on, new \
        listings and new accounts are refused.",
    /// The chain provider returns another chain than preprod.
    OtherChain => "BLOCKFROST_URL names another network. Nothing is undone or done until it shows preprod again.",
    /// The newest block's time is far ahead of the clock.
    FutureBlock => "The provider is wrong, or the clock is: nothing is done meanwhile.",
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
