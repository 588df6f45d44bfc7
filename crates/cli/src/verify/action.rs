//! Checks the draft of an action on an escrow: how the escrow continues or ends, and the collateral.

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

use super::{DraftLimits, DraftedTx, NotAsAsked, SigningWallet, common, elsewhere, ensure, failed, only_to, sign};

/// Maximum fee of an action. An action costs about 0.5 tADA including the script.
const MAX_FEE: Lovelace = Lovelace::from_ada(3);
/// Maximum collateral of an action, which is lost only if the script fails. The ledger demands one and a half times the
/// fee.
const MAX_COLLATERAL: Lovelace = Lovelace::from_ada(5);
/// Transaction parts that an action needs to run the script, in addition to those of a payment.
const PARTS: &[TxPart] = &[
    TxPart::ScriptDataHash,
    TxPart::CollateralInputs,
    TxPart::CollateralReturn,
    TxPart::TotalCollateral,
    TxPart::ReferenceInputs,
    TxPart::Redeemers,
];

/// Checks a draft returned by `POST /purchases/{id}/action-draft`, and signs it.
///
/// # Errors
/// Returns the first difference between the draft and the action.
pub fn action(
    draft: &DraftedTx,
    (action, escrow): (Action, &Escrow),
    own: &SigningWallet<'_>,
) -> Result<SignedTx, NotAsAsked> {
    let tx = draft.read()?;
    let theirs = common(
        &tx,
        own,
        &DraftLimits { parts: PARTS, escrow: Some(&escrow.utxo), most_fee: MAX_FEE, commitment: None },
    )?;
    let other = NotAsAsked::OtherAction(action.name());
    let Some(rule) = Rule::find(action, &escrow.datum) else { return Err(other) };
    match rule.effect {
        // Everything returns to the wallet.
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
            // The time is not checked here, because the contract checks it.
            let goes_on = rule.continues(&escrow.datum, &Datum::from_cbor(cbor)?, 0, 0);
            let is_whole = output.value == escrow.utxo.value && output.reference_script.is_none();
            ensure(goes_on && is_whole, other)?;
        }
    }
    collateral(&tx, own)?;
    sign(&tx, own)
}

/// Checks the collateral: it comes only from this wallet, it is small, and the rest of its inputs returns to the
/// wallet.
fn collateral(tx: &SignedTx, own: &SigningWallet<'_>) -> Result<(), NotAsAsked> {
    let TransactionUtxos { spent, created: made, .. } = TransactionUtxos::read(&failed(tx))?;
    let lovelace_of = |input: &TxRef| {
        let known = own.utxos.iter().find(|utxo| utxo.reference == *input);
        known.map(|utxo| utxo.value.lovelace).ok_or(NotAsAsked::Input(*input))
    };
    let pledged = spent.iter().map(lovelace_of).collect::<Result<Vec<Lovelace>, _>>()?;
    let homes: Vec<String> = own.keys.addresses().iter().map(ToString::to_string).collect();
    if let Some(Utxo { address, value, .. }) = made.iter().find(|output| !homes.contains(&output.address)) {
        return Err(NotAsAsked::Output { address: address.clone(), lovelace: value.lovelace });
    }
    let returned = made.iter().map(|output| output.value.lovelace).sum();
    let lost = pledged.into_iter().sum::<Lovelace>().saturating_sub(returned);
    ensure(lost <= MAX_COLLATERAL, NotAsAsked::TooMuchCollateral(lost, MAX_COLLATERAL))
}
