//! Rule 8: every output (the scheme asks it of the one to `payTo`, the ledger of all) holds
//! `(160 + size) * coinsPerUtxoByte`.

use super::Situation;
use crate::Refusal;

/// Every output holds its minimum.
pub fn is_held(situation: &Situation<'_>) -> Result<(), Refusal> {
    for (index, output) in situation.case.offer.tx.outputs.iter().enumerate() {
        let least = situation
            .facts
            .parameters
            .min_utxo(output.size)
            .ok_or(Refusal::Requirements("the protocol's output parameters are out of range"))?;
        if output.value.lovelace < least {
            return Err(Refusal::MinUtxo { output: index, least });
        }
    }
    Ok(())
}
