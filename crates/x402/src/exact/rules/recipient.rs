//! Rule 2: an output pays exactly `payTo`. Addresses are compared whole: the same payment key with another stake
//! credential is another address.

use bech32::{Bech32, primitives::decode::CheckedHrpstring};
use cardano::tx::AddressKind;

use super::Case;
use crate::Refusal;

/// At least one output is at `payTo`.
pub fn is_paid(case: &Case<'_>) -> Result<(), Refusal> {
    let pay_to = pay_to_bytes(case)?;
    if case.offer.tx.outputs.iter().any(|output| output.address == pay_to) {
        Ok(())
    } else {
        Err(Refusal::Recipient(case.requirements.pay_to.clone()))
    }
}

/// The bytes of `payTo`, which the requirements' issuer vouches for: a key's or a script's address of preprod.
pub(super) fn pay_to_bytes(case: &Case<'_>) -> Result<Vec<u8>, Refusal> {
    const INVALID: Refusal = Refusal::Requirements("payTo is not a base or enterprise address of preprod");
    let text = &case.requirements.pay_to;
    let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| INVALID)?;
    let bytes: Vec<u8> = checked.byte_iter().collect();
    let ours = matches!(AddressKind::of(&bytes), AddressKind::Key(_) | AddressKind::Script(_));
    if checked.hrp().as_str() == "addr_test" && ours { Ok(bytes) } else { Err(INVALID) }
}
