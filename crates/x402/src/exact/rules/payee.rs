//! Rules 2, 3 and 4: a single output at exactly `payTo` must hold at least the amount, of exactly the asset.
//!
//! Whole addresses are compared, so the same payment key with another stake credential is another address. Outputs are
//! not summed: "the output sent to `payTo` MUST contain" the amount. Further outputs at `payTo` are gifts.

use cardano::tx::Output;

use super::PaymentContext;
use crate::{Refusal, wire::Asset};

refusals! {
    /// Reason why the payee does not receive the requested amount.
    pub enum Underpaid {
        /// The transaction has no output at the address `payTo`. Contains that address.
        #[error("no output pays {0}")]
        Recipient(String) => "invalid_exact_cardano_payload_recipient_mismatch",
        /// The outputs at `payTo` do not hold the asset.
        #[error("the output to payTo holds none of the asset that is asked for")]
        AssetMissing => "invalid_exact_cardano_payload_asset_mismatch",
        /// No single output at `payTo` holds the amount.
        #[error("no single output to payTo holds the {asked} that are asked for; the most is {most}")]
        AmountInsufficient {
            /// Amount that the offer requests.
            asked: u64,
            /// Largest amount in a single output at `payTo`.
            most: u64,
        } => "invalid_exact_cardano_payload_amount_insufficient",
    }
}

/// Returns the transaction's outputs at `payTo`.
fn paid<'a>(case: &'a PaymentContext<'_>) -> impl Iterator<Item = &'a Output> {
    case.payment.tx.outputs.iter().filter(|output| output.address == case.pay_to_bytes)
}

/// Checks that the transaction has an output at `payTo`.
pub fn is_paid(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    match paid(case).next() {
        Some(_) => Ok(()),
        None => Err(Underpaid::Recipient(case.offered.requirements.pay_to.clone()).into()),
    }
}

/// Checks that a single output at `payTo` holds the requested amount.
pub fn is_paid_enough(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let asset = &case.offered.requirements.asset;
    let unit = asset.unit();
    let held = paid(case).map(|output| match &unit {
        None => output.value.lovelace.get(),
        Some(unit) => output.value.assets.get(unit).copied().unwrap_or(0),
    });
    let (asked, most) = (case.offered.requirements.amount.get(), held.max().unwrap_or(0));
    if most >= asked {
        Ok(())
    } else if most == 0 && *asset != Asset::Lovelace {
        Err(Underpaid::AssetMissing.into())
    } else {
        Err(Underpaid::AmountInsufficient { asked, most }.into())
    }
}
