//! Why a transaction cannot be built, with the amounts that are missing.

use crate::{
    chain::AssetUnit,
    fees::MAX_REFERENCE_SCRIPT_BYTES,
    hash::{KeyHash, TxRef},
    money::Lovelace,
};

/// Why a transaction cannot be built. Nothing was spent or reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The wallet holds too little. With `missing` more in one further plain UTxO the same plan can be built.
    #[error("{} missing in the wallet", missing.display_tada())]
    Insufficient {
        /// What must come in, the fee for one more input included.
        missing: Lovelace,
    },
    /// The outputs need more of a native asset than the inputs and the wallet hold.
    #[error("{missing} of the native asset {unit} missing in the wallet")]
    AssetMissing {
        /// Which asset.
        unit: AssetUnit,
        /// How much more of it is needed.
        missing: u128,
    },
    /// An output holds less than the ledger asks of its size.
    #[error("output {index} must hold at least {}", minimum.display_tada())]
    OutputBelowMinimum {
        /// Its index among the plan's outputs.
        index: usize,
        /// What it must hold.
        minimum: Lovelace,
    },
    /// An output's value has more bytes than the ledger allows: too many native assets.
    #[error("output {index} has a value of {bytes} bytes; the ledger allows {limit}")]
    OutputValueTooLarge {
        /// Its index among the plan's outputs.
        index: usize,
        /// Its bytes.
        bytes: usize,
        /// The ledger's limit.
        limit: u64,
    },
    /// The transaction would be larger than the ledger allows: the money lies in too many small UTxOs.
    #[error("the wallet's UTxOs are too small: the transaction would have {bytes} bytes and may have {limit}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The ledger's limit.
        limit: u64,
    },
    /// The inputs, spent and referenced, carry more bytes of scripts than the ledger lets a transaction use.
    #[error("the inputs carry scripts of up to {bytes} bytes; a transaction may use {MAX_REFERENCE_SCRIPT_BYTES}")]
    ScriptsTooLarge {
        /// Their bytes, at most.
        bytes: u64,
    },
    /// The redeemers ask for more execution units than a transaction may use.
    #[error("the scripts ask for {mem} memory and {steps} steps: more than a transaction may use")]
    ExUnitsTooHigh {
        /// Memory asked for.
        mem: u64,
        /// Steps asked for.
        steps: u64,
    },
    /// No wallet UTxOs can be put up as collateral for the scripts.
    #[error("{} missing in the wallet as collateral", missing.display_tada())]
    CollateralMissing {
        /// What must come in, in one further plain UTxO.
        missing: Lovelace,
    },
    /// The provider told no cost model for the scripts.
    #[error("the chain provider told no cost model of Plutus V3: no script can be run")]
    NoCostModel,
    /// The wallet holds nothing that could be swept once the reserve and the fee are set aside.
    #[error("nothing to withdraw: the wallet holds {}, {} less than needed", balance.display_tada(), missing.display_tada())]
    NothingToSweep {
        /// The lovelace of the UTxOs that could have been swept.
        balance: Lovelace,
        /// How much more would be enough.
        missing: Lovelace,
    },
    /// The validity interval is empty.
    #[error("the transaction could never be valid: from slot {from}, before slot {until}")]
    EmptyInterval {
        /// First slot.
        from: u64,
        /// First slot after.
        until: u64,
    },
    /// A key must sign and was not given.
    #[error("the transaction needs the signature of key {0}")]
    SignerMissing(KeyHash),
    /// The plan names an input, a script input or a reference input twice, or one both spent and referenced.
    #[error("the plan uses {0} twice")]
    UsedTwice(TxRef),
    /// Something in the plan or in a UTxO that it names is not what it should be.
    #[error("{what} is malformed")]
    Malformed {
        /// Which part.
        what: &'static str,
    },
    /// A sum or a price leaves the ledger's range.
    #[error("an amount leaves the ledger's range")]
    OutOfRange,
}
