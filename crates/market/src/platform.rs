//! The platform's wallet, which pays the fees of results and of the watcher's actions.
//!
//! It keeps [`OUTPUTS`] separate outputs, so that results of different sales need not spend each other's change.

use cardano::{Address, Lovelace, chain::Utxo, tx::build::NewOutput};
use outbox::WalletSnapshot;

/// The least that pays for an action alone: fee, collateral, and change that is an output again.
pub(crate) const MIN_FUNDS: Lovelace = Lovelace::from_ada(3);
/// What an output holds that is split off: fees of a dozen results before it is too small.
const SPLIT: Lovelace = Lovelace::from_ada(8);
/// Separate outputs that the wallet keeps: as many results wait for one block.
pub(crate) const OUTPUTS: usize = 60;
/// Outputs that one transaction splits off: it stays small enough to be accepted by every node.
const MAX_SPLIT: usize = 50;
/// What stays whole: a payout to a creator, and the fees of a tick, need not be gathered.
const UNSPLIT_RESERVE: Lovelace = Lovelace::from_ada(50);
/// After as many blocks, about an hour, a tick looks at the wallet though it has nothing to pay.
const WALLET_CHECK_BLOCKS: u64 = 180;

/// Whether a tick that sees this newest block looks at the wallet though it has nothing to pay: the first, and one about
/// every hour. `before` is the newest block that an earlier tick saw.
pub(crate) fn is_wallet_check_due(before: Option<u64>, now: u64) -> bool {
    let period = |height: u64| height.checked_div(WALLET_CHECK_BLOCKS);
    before.is_none_or(|before| period(before) != period(now))
}

/// Whether an output pays for an action alone. Tokens, and scripts, stay where they are.
pub(crate) fn pays_alone(utxo: &Utxo) -> bool {
    utxo.is_plain() && utxo.value.lovelace >= MIN_FUNDS
}

/// The shown outputs that no outbox entry has reserved.
pub(crate) fn free_outputs<'a>(shown: &'a [Utxo], snapshot: &'a WalletSnapshot) -> impl Iterator<Item = &'a Utxo> {
    shown.iter().filter(|utxo| !snapshot.reserved.contains(&utxo.reference))
}

/// The outputs to split off the largest of these, where fewer than half of [`OUTPUTS`] pay alone and it holds enough.
/// Returns the output to spend, and what to make of it.
pub(crate) fn split(utxos: &[Utxo], address: Address) -> Option<(Utxo, Vec<NewOutput>)> {
    let separate = utxos.iter().filter(|utxo| pays_alone(utxo)).count();
    if separate.saturating_mul(2) >= OUTPUTS {
        return None;
    }
    let largest = utxos.iter().filter(|utxo| utxo.is_plain()).max_by_key(|utxo| utxo.value.lovelace)?;
    let spare = largest.value.lovelace.saturating_sub(UNSPLIT_RESERVE).get().checked_div(SPLIT.get())?;
    let count = usize::try_from(spare).unwrap_or(usize::MAX).min(OUTPUTS.saturating_sub(separate)).min(MAX_SPLIT);
    (count >= 2).then(|| (largest.clone(), vec![NewOutput::pay(address, SPLIT); count]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::{TxHash, TxRef, chain::Value, keys::SigningKey};

    fn outputs(ada: &[u32]) -> Vec<Utxo> {
        let of = |(index, ada): (u16, &u32)| Utxo {
            reference: TxRef { tx: TxHash::new([1; 32]), index },
            address: String::new(),
            value: Value { lovelace: Lovelace::from_ada(*ada), ..Value::default() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        (0..).zip(ada).map(of).collect()
    }

    #[test]
    fn a_wallet_is_checked_first_and_then_about_every_hour() {
        assert!(is_wallet_check_due(None, 7));
        assert!(!is_wallet_check_due(Some(7), 7));
        assert!(!is_wallet_check_due(Some(180), 359));
        assert!(is_wallet_check_due(Some(359), 360));
    }

    #[test]
    fn a_wallet_with_few_outputs_splits_its_largest() {
        let address = SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address();
        let count = |ada: &[u32]| split(&outputs(ada), address).map(|(from, made)| (from.reference.index, made.len()));
        assert_eq!(count(&[]), None);
        assert_eq!(count(&[60]), None, "nothing to spare");
        assert_eq!(count(&[2, 100, 90]), Some((1, 6)), "of what it holds beyond the part that stays whole");
        assert_eq!(count(&[10_000]), Some((0, MAX_SPLIT)));
        assert_eq!(count(&[[8; 29].as_slice(), &[10_000]].concat()), None, "half of them are enough");
        assert_eq!(count(&[[8; 28].as_slice(), &[10_000]].concat()), Some((28, 31)));
    }
}
