//! An action's draft: the escrow after it, and the collateral for its script.

use super::{Bounds, Draft, NotAsAsked, Own, common, elsewhere, only_to, sign};
use cardano::{
    Lovelace, TxRef,
    chain::Utxo,
    tx::{OutputDatum, SignedTx, TransactionUtxos, TxPart},
};
use escrow::{
    Action, Datum, PlutusAddress,
    plan::Escrow,
    rules::{Effect, Rule},
};

/// An action costs some 0.5 tADA with the script's fee.
const MAX_FEE: Lovelace = Lovelace::from_ada(3);
/// One and a half of the fee, taken only where the script fails.
const MAX_COLLATERAL: Lovelace = Lovelace::from_ada(5);
/// What a transaction with a script has beyond a payment's parts.
const PARTS: &[TxPart] = &[
    TxPart::ScriptDataHash,
    TxPart::CollateralInputs,
    TxPart::CollateralReturn,
    TxPart::TotalCollateral,
    TxPart::ReferenceInputs,
    TxPart::Redeemers,
];
/// `is_valid` in CBOR where the scripts fail: in front of the last byte, no metadata.
const FAILED: u8 = 0xf4;

/// Judges a draft (`POST /purchases/{id}/action-draft`), and signs it where it is what was asked for.
///
/// # Errors
/// It is not.
pub fn action(
    draft: &Draft,
    (action, escrow): (Action, &Escrow),
    own: &Own<'_>,
    key: &cardano::keys::SigningKey,
) -> Result<SignedTx, NotAsAsked> {
    let tx = draft.read()?;
    let theirs =
        common(&tx, own, &Bounds { parts: PARTS, others: &[&escrow.utxo], most_fee: MAX_FEE, commitment: None })?;
    let other = NotAsAsked::OtherAction(action.name());
    let Some(rule) = Rule::find(action, &escrow.datum) else { return Err(other) };
    match rule.effect {
        // Nothing of it goes to anyone else, and nothing is lost: it all comes home.
        Effect::End(_) => {
            if let Some(output) = theirs.first() {
                return Err(elsewhere(output));
            }
        }
        Effect::Continue { .. } => {
            let address = &escrow.utxo.address;
            let at: PlutusAddress = address.parse().map_err(|_| NotAsAsked::Payee(0, address.clone()))?;
            let output = only_to(&theirs, &at.to_bytes(), address)?;
            let Some(OutputDatum::Inline(cbor)) = &output.datum else { return Err(other) };
            // At any time: the contract says which, and refuses what comes too early or too late.
            let goes_on = rule.continues(&escrow.datum, &Datum::from_cbor(cbor)?, 0, 0);
            if output.value != escrow.utxo.value || output.reference_script.is_some() || !goes_on {
                return Err(other);
            }
        }
    }
    collateral(&tx, own)?;
    sign(&tx, key)
}

/// What the ledger takes if the script fails: of this wallet's, little, and the rest comes home.
fn collateral(tx: &SignedTx, own: &Own<'_>) -> Result<(), NotAsAsked> {
    let mut failed = tx.cbor().to_vec();
    if let [.., valid, _] = failed.as_mut_slice() {
        *valid = FAILED;
    }
    let taken = TransactionUtxos::read(&failed)?;
    let value_of = |input: &TxRef| own.utxos.iter().find(|utxo| utxo.reference == *input);
    let mut put_up = Vec::with_capacity(taken.spent.len());
    for input in &taken.spent {
        put_up.push(value_of(input).ok_or(NotAsAsked::Input(*input))?.value.lovelace);
    }
    let home = own.address.to_string();
    if let Some(elsewhere) = taken.made.iter().find(|output| output.address != home) {
        let Utxo { address, value, .. } = elsewhere;
        return Err(NotAsAsked::Output { address: address.clone(), lovelace: value.lovelace });
    }
    let put_up: Lovelace = put_up.into_iter().sum();
    let returned: Lovelace = taken.made.iter().map(|output| output.value.lovelace).sum();
    let lost = put_up.saturating_sub(returned);
    if lost > MAX_COLLATERAL { Err(NotAsAsked::TooMuchLocked(lost, MAX_COLLATERAL)) } else { Ok(()) }
}
