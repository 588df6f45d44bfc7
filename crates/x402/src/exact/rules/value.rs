//! Rule 6, conservation of value: for each token, inputs must equal outputs; for lovelace, inputs must equal outputs
//! plus fee.

use std::collections::BTreeMap;

use cardano::chain::Value;

use super::{VerificationContext, inputs::resolved};
use crate::Refusal;

/// Inputs and outputs do not balance in one asset. Contains the name of the asset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value of {0} is not conserved: inputs must equal outputs plus fee")]
pub struct NotConserved(pub String);

impl NotConserved {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        "invalid_exact_cardano_payload_value_not_conserved"
    }
}

/// Checks that inputs equal outputs plus fee in every asset.
pub fn is_conserved(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let tx = &context.case.payment.tx;
    let mut balance = ValueSums::default();
    for (_, utxo) in resolved(context)? {
        balance.add(&utxo.value, 1);
    }
    for output in &tx.outputs {
        balance.add(&output.value, -1);
    }
    balance.lovelace = balance.lovelace.saturating_sub(tx.fee.get().into());
    if balance.lovelace != 0 {
        return Err(NotConserved("lovelace".into()).into());
    }
    let odd = balance.assets.into_iter().find(|(_, quantity)| *quantity != 0);
    odd.map_or(Ok(()), |(unit, _)| Err(NotConserved(unit.into()).into()))
}

/// The sum of each asset over inputs minus outputs. Sums cannot overflow, because a transaction of 16 KiB moves fewer
/// than 2^14 quantities below 2^64.
#[derive(Default)]
struct ValueSums<'a> {
    lovelace: i128,
    assets: BTreeMap<&'a str, i128>,
}

impl<'a> ValueSums<'a> {
    fn add(&mut self, value: &'a Value, sign: i128) {
        let signed = |quantity: u64| i128::from(quantity).saturating_mul(sign);
        self.lovelace = self.lovelace.saturating_add(signed(value.lovelace.get()));
        for (unit, quantity) in &value.assets {
            let sum = self.assets.entry(unit).or_default();
            *sum = sum.saturating_add(signed(*quantity));
        }
    }
}
