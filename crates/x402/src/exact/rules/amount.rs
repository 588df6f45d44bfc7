//! Rules 3 and 4: one output at `payTo` holds at least the amount, of exactly the asset.
//!
//! Outputs are not added up: "the output sent to `payTo` MUST contain" the amount. Further outputs at `payTo` are gifts.

use super::{Case, recipient::pay_to_bytes};
use crate::{Refusal, wire::Asset};

/// One output at `payTo` holds enough.
pub fn is_enough(case: &Case<'_>) -> Result<(), Refusal> {
    let pay_to = pay_to_bytes(case)?;
    let unit = case.requirements.asset.unit();
    let held = case.offer.tx.outputs.iter().filter(|output| output.address == pay_to).map(|output| match &unit {
        None => output.value.lovelace.get(),
        Some(unit) => output.value.assets.get(unit).copied().unwrap_or(0),
    });
    let (asked, most) = (case.requirements.amount.get(), held.max().unwrap_or(0));
    if most >= asked {
        Ok(())
    } else if most == 0 && case.requirements.asset != Asset::Lovelace {
        Err(Refusal::AssetMissing)
    } else {
        Err(Refusal::AmountInsufficient { asked, most })
    }
}
