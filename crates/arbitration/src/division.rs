//! Divides a disputed escrow between buyer and seller completely, to the last lovelace and token, because whatever is
//! left would go to whoever submits the transaction.

use escrow::{
    AssetValue,
    dispute::{DisputeWithdrawal, Split},
    evidence::Winner,
    plan::Escrow,
};

/// Number of hexadecimal digits of a policy id.
const POLICY_HEX: usize = 56;

/// Computes the award if `winner` wins the dispute, and each party's share in lovelace. The winner also gets any native
/// tokens in the escrow. Returns `None` if the escrow holds less lovelace than the buyer's collateral.
#[must_use]
pub fn divide(escrow: &Escrow, winner: Winner) -> Option<(DisputeWithdrawal, Split)> {
    let split = Split::of(winner, &escrow.datum, escrow.utxo.value.lovelace)?;
    let mut intent = DisputeWithdrawal::new(escrow.utxo.reference, split);
    let value = match winner {
        Winner::Buyer => &mut intent.buyer_value,
        Winner::Seller => &mut intent.seller_value,
    };
    // Units are sorted and consist of policy and name in hex, so equal policies are adjacent.
    for (unit, quantity) in &escrow.utxo.value.assets {
        let (policy, name) = unit.split_at_checked(POLICY_HEX)?;
        add(value, hex::decode(policy).ok()?, hex::decode(name).ok()?, *quantity);
    }
    Some((intent, split))
}

fn add(AssetValue(policies): &mut AssetValue, policy: Vec<u8>, name: Vec<u8>, quantity: u64) {
    match policies.last_mut().filter(|(last, _)| *last == policy) {
        Some((_, names)) => names.push((name, quantity)),
        None => policies.push((policy, vec![(name, quantity)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::{
        Lovelace, TxHash, TxRef,
        chain::{Utxo, Value},
        keys::SigningKey,
    };
    use escrow::{Datum, Deadlines, State};

    fn disputed(locked: u64, assets: &[(&str, u64)]) -> Escrow {
        let party = SigningKey::from_seed(&[1; 32]).unwrap().enterprise_address();
        let datum = Datum {
            buyer: party.into(),
            buyer_return_address: None,
            seller: party.into(),
            seller_return_address: None,
            reference_key: vec![],
            reference_signature: vec![1; 16],
            seller_nonce: vec![],
            buyer_nonce: vec![],
            agent_identifier: vec![],
            collateral_return: Lovelace::from_ada(2),
            input_hash: vec![4; 32],
            result_hash: vec![9; 32],
            deadlines: Deadlines::issue(0).unwrap(),
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: State::Disputed,
        };
        let assets = assets.iter().map(|(unit, quantity)| ((*unit).to_owned(), *quantity)).collect();
        let utxo = Utxo {
            reference: TxRef { tx: TxHash::new([7; 32]), index: 1 },
            address: String::new(),
            value: Value { lovelace: Lovelace::new(locked).unwrap(), assets },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        };
        Escrow { utxo, datum }
    }

    #[test]
    fn the_loser_gets_nothing_but_a_buyers_collateral() {
        let escrow = disputed(7_000_000, &[]);
        let (intent, split) = divide(&escrow, Winner::Buyer).unwrap();
        assert_eq!((split.buyer, split.seller), (Lovelace::from_ada(7), Lovelace::ZERO));
        assert_eq!((intent.own_ref, intent.seller_value), (escrow.utxo.reference, AssetValue::default()));
        let (_, split) = divide(&escrow, Winner::Seller).unwrap();
        assert_eq!((split.buyer, split.seller), (Lovelace::from_ada(2), Lovelace::from_ada(5)));
        assert!(divide(&disputed(1_999_999, &[]), Winner::Seller).is_none());
    }

    #[test]
    fn tokens_in_the_escrow_go_to_the_winner_in_the_ledgers_order() {
        let (a, b) = ("aa".repeat(28), "bb".repeat(28));
        let units = [(&*format!("{b}01"), 3), (&*a, 1), (&*format!("{a}00"), 2)];
        let escrow = disputed(7_000_000, &units);
        let tokens = vec![(vec![0xaa; 28], vec![(vec![], 1), (vec![0], 2)]), (vec![0xbb; 28], vec![(vec![1], 3)])];
        let (intent, _) = divide(&escrow, Winner::Buyer).unwrap();
        assert_eq!(intent.buyer_value.0[1..], tokens);
        assert_eq!(intent.seller_value, AssetValue::default());
        let (intent, _) = divide(&escrow, Winner::Seller).unwrap();
        assert_eq!(intent.seller_value.0[1..], tokens);
        assert_eq!(intent.buyer_value, AssetValue::lovelace(Lovelace::from_ada(2)));
    }
}
