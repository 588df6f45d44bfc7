//! Payments to creators among the outputs of a transaction.

use cardano::{Lovelace, chain::Utxo};

/// Plain outputs of a transaction, each of which pays one creator for one sale.
pub(super) struct Payments<'a>(Vec<&'a Utxo>);

impl<'a> Payments<'a> {
    pub(super) fn of(made: &'a [Utxo]) -> Self {
        Self(made.iter().filter(|output| output.inline_datum.is_none() && output.datum_hash.is_none()).collect())
    }

    /// Takes the smallest output that pays at least this much to an address; whether there is one.
    pub(super) fn take(&mut self, to: &str, least: Lovelace) -> bool {
        let pays = |(_, output): &(usize, &&Utxo)| output.address == to && output.value.lovelace >= least;
        let found = self.0.iter().enumerate().filter(pays).min_by_key(|(_, output)| output.value.lovelace);
        let Some(index) = found.map(|(index, _)| index) else { return false };
        self.0.swap_remove(index);
        true
    }
}

#[cfg(test)]
mod tests {
    use cardano::{TxHash, TxRef, chain::Value};

    use super::*;

    #[test]
    fn an_output_pays_for_one_sale_only() {
        let output = |ada: u32, inline_datum| Utxo {
            reference: TxRef { tx: TxHash::new([1; 32]), index: 0 },
            address: "creator".to_owned(),
            value: Value { lovelace: Lovelace::from_ada(ada), ..Value::default() },
            inline_datum,
            datum_hash: None,
            reference_script: None,
        };
        let ada = Lovelace::from_ada;
        let made = [output(9, None), output(5, None), output(50, Some(vec![0x80]))];
        let mut payments = Payments::of(&made);
        assert!(!payments.take("somebody else", ada(1)));
        assert!(payments.take("creator", ada(4)), "the smaller one");
        assert!(payments.take("creator", ada(9)), "the larger one is left");
        assert!(!payments.take("creator", ada(1)), "what is tagged for a party of an escrow pays no creator");
    }
}
