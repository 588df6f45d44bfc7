//! Errors of the transaction builder. They contain the amounts that are missing.

use crate::{
    chain::AssetUnit,
    fees::MAX_REFERENCE_SCRIPT_BYTES,
    hash::{KeyHash, TxRef},
    money::Lovelace,
};

/// Reason why a transaction cannot be built. Nothing was spent or reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The wallet holds too little lovelace. One more UTxO that holds `missing` lovelace and nothing else would be
    /// enough.
    #[error("{} missing in the wallet", missing.display_tada())]
    Insufficient {
        /// Missing lovelace, including the fee for one more input.
        missing: Lovelace,
    },
    /// The outputs need more of a native asset than the inputs and the wallet hold.
    #[error("{missing} of the native asset {unit} missing in the wallet")]
    AssetMissing {
        /// Policy id and name of the asset, in hex.
        unit: AssetUnit,
        /// Quantity of the asset that is missing.
        missing: u128,
    },
    /// An output holds less than the ledger's minimum for its size.
    #[error("output {index} must hold at least {}", minimum.display_tada())]
    OutputBelowMinimum {
        /// Index of the output in the plan.
        index: usize,
        /// Minimum amount in lovelace that the ledger requires.
        minimum: Lovelace,
    },
    /// An output's value is larger than the ledger allows, because it holds too many native assets.
    #[error("output {index} has a value of {bytes} bytes; the ledger allows {limit}")]
    OutputValueTooLarge {
        /// Index of the output in the plan.
        index: usize,
        /// Size of the value, in bytes.
        bytes: usize,
        /// Maximum size of a value, in bytes.
        limit: u64,
    },
    /// The transaction would exceed the ledger's maximum size, for example because the wallet's money is spread over
    /// too many small UTxOs.
    #[error("the wallet's UTxOs are too small: the transaction would have {bytes} bytes and may have {limit}")]
    TooLarge {
        /// Size of the transaction, in bytes.
        bytes: usize,
        /// Maximum size of a transaction, in bytes.
        limit: u64,
    },
    /// The spent and referenced UTxOs carry more bytes of scripts than one transaction may use.
    #[error("the inputs carry scripts of up to {bytes} bytes; a transaction may use {MAX_REFERENCE_SCRIPT_BYTES}")]
    ScriptsTooLarge {
        /// Upper bound of the scripts' size, in bytes.
        bytes: u64,
    },
    /// The redeemers need more execution units than a transaction may use.
    #[error("the scripts ask for {mem} memory and {steps} steps: more than a transaction may use")]
    ExUnitsTooHigh {
        /// Required memory units.
        mem: u64,
        /// Required CPU steps.
        steps: u64,
    },
    /// The wallet has no UTxOs that can serve as collateral.
    #[error("{} missing in the wallet as collateral", missing.display_tada())]
    CollateralMissing {
        /// Missing lovelace. One more UTxO that holds this amount and nothing else would be enough.
        missing: Lovelace,
    },
    /// The transaction runs scripts, but the provider sent no cost model of Plutus V3.
    #[error("the chain provider returned no cost model of Plutus V3, so no script can be run")]
    NoCostModel,
    /// The wallet cannot be emptied, because nothing would remain after the reserve and the fee.
    #[error("nothing to withdraw: the wallet holds {}, {} less than needed", balance.display_tada(), missing.display_tada())]
    NothingToSweep {
        /// Lovelace of the UTxOs that could have been swept.
        balance: Lovelace,
        /// Lovelace by which the remainder falls short of an output's minimum.
        missing: Lovelace,
    },
    /// The plan's validity interval is empty.
    #[error("the transaction could never be valid: from slot {from}, before slot {until}")]
    EmptyInterval {
        /// First slot of the interval.
        from: u64,
        /// First slot after the interval.
        until: u64,
    },
    /// The key with this hash must sign, but is not among the signers.
    #[error("the transaction needs the signature of key {0}")]
    SignerMissing(KeyHash),
    /// The plan uses this output twice: as two inputs, as two reference inputs, or as both.
    #[error("the plan uses {0} twice")]
    UsedTwice(TxRef),
    /// A part of the plan, or of a UTxO that it names, is malformed.
    #[error("{what} is malformed")]
    Malformed {
        /// Description of the malformed part.
        what: &'static str,
    },
    /// A sum or a price exceeds the ledger's range.
    #[error("an amount is out of the ledger's range")]
    OutOfRange,
}
