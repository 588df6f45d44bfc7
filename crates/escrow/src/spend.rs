//! Determines how an escrow continued or ended, from the outputs of the transaction that spent it.
//!
//! From each state the contract allows only one way to end an escrow, so the redeemer and the signatures are not
//! needed.

use cardano::{Lovelace, chain::Utxo};

use crate::{
    address::PlutusAddress,
    datum::Datum,
    dispute::read_output_reference,
    plan::Escrow,
    redeemer::Action,
    rules::{Effect, PayoutRule, Rule},
};

/// Outcome of a transaction that spent an escrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The escrow continues in a new output.
    Continues(Box<Escrow>),
    /// The escrow ended.
    Ended(Ending),
}

/// The way in which an escrow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The seller collected the money, or an award paid the seller in full or more than the buyer.
    Withdrawn,
    /// The buyer got the money back, or an award paid the buyer more than the seller.
    Refunded,
    /// An award gave both parties equal shares, or the escrow ended in a way that no rule describes.
    Closed,
}

impl Ending {
    /// Returns the status that a purchase has in the API after this ending.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Withdrawn => "withdrawn",
            Self::Refunded => "refunded",
            Self::Closed => "closed",
        }
    }
}

impl Escrow {
    /// Determines how a transaction continued or ended this escrow, given the transaction's outputs. The transaction
    /// must have spent the escrow, and its scripts must have succeeded.
    #[must_use]
    pub fn spent_into(&self, outputs: &[Utxo]) -> Spent {
        let here = outputs.iter().filter(|output| output.address == self.utxo.address);
        let escrows = here.filter_map(|output| Self::of(output.clone()).ok());
        // The contract allows only one output with the escrow's reference signature: its continuation.
        let mut same = escrows.filter(|escrow| escrow.datum.reference_signature == self.datum.reference_signature);
        match same.next() {
            Some(escrow) => Spent::Continues(Box::new(escrow)),
            None => Spent::Ended(self.ending(outputs)),
        }
    }

    fn ending(&self, outputs: &[Utxo]) -> Ending {
        match ends_by(&self.datum) {
            Some(PayoutRule::SellerCollects) => Ending::Withdrawn,
            Some(PayoutRule::BuyerRefunded) => Ending::Refunded,
            Some(PayoutRule::AsSigned) => {
                let buyer = self.tagged_to(self.datum.buyer_payout_address(), outputs);
                let seller = self.tagged_to(self.datum.seller_payout_address(), outputs);
                // Anyone may submit a signed award and add money of their own. A buyer who adds to their own share
                // takes nothing from a seller who was paid in full.
                let in_full = self.utxo.value.lovelace.checked_sub(self.datum.collateral_return);
                match buyer.cmp(&seller) {
                    std::cmp::Ordering::Greater if in_full.is_none_or(|full| seller < full) => Ending::Refunded,
                    std::cmp::Ordering::Equal if in_full.is_none_or(|full| seller < full) => Ending::Closed,
                    _ => Ending::Withdrawn,
                }
            }
            None => Ending::Closed,
        }
    }

    /// Sums the lovelace that is paid to an address in outputs tagged with this escrow's output reference.
    fn tagged_to(&self, address: PlutusAddress, outputs: &[Utxo]) -> Lovelace {
        let (own, address) = (self.utxo.reference, address.to_string());
        let names = |output: &Utxo| output.inline_datum.as_deref().map(read_output_reference) == Some(Ok(own));
        let tagged = |output: &&Utxo| output.address == address && names(output);
        outputs.iter().filter(tagged).map(|output| output.value.lovelace).sum()
    }
}

/// Returns the payout rule with which this escrow can end, or `None` if it cannot end in its state.
fn ends_by(datum: &Datum) -> Option<PayoutRule> {
    let ends = |action| match Rule::find(action, datum)?.effect {
        Effect::End(payout) => Some(payout),
        Effect::Continue { .. } => None,
    };
    Action::ALL.into_iter().find_map(ends)
}

#[cfg(test)]
mod tests {
    use cardano::{KeyHash, ScriptHash, TxHash, TxRef, chain::Value};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        codec::to_cbor,
        datum::{
            State,
            tests::{any_datum, published},
        },
        deployment::{Deployment, Parameters},
        dispute::output_reference,
    };

    fn deployment() -> Deployment {
        let admin_vkeys = vec![KeyHash::new([1; 28])];
        Deployment {
            script_hash: ScriptHash::new([0xee; 28]),
            parameters: Parameters { required_admins: 1, admin_vkeys, cooldown_period: 60_000 },
            reference_script: TxRef { tx: TxHash::new([7; 32]), index: 1 },
            reference_script_bytes: 4_000,
            blueprint_sha256: None,
        }
    }

    fn output(address: PlutusAddress, lovelace: u64, inline_datum: Option<Vec<u8>>) -> Utxo {
        Utxo {
            reference: TxRef { tx: TxHash::new([8; 32]), index: 0 },
            address: address.to_string(),
            value: Value { lovelace: Lovelace::new(lovelace).unwrap(), ..Value::default() },
            inline_datum,
            datum_hash: None,
            reference_script: None,
        }
    }

    fn escrow(state: State) -> Escrow {
        let has_result = matches!(state, State::ResultSubmitted | State::Disputed | State::WithdrawAuthorized);
        let result_hash = if has_result { vec![0x99; 32] } else { vec![] };
        let datum = Datum { state, result_hash, ..published() };
        Escrow::read(output(deployment().address(), 7_000_000, Some(datum.to_cbor())), &deployment()).unwrap()
    }

    #[test]
    fn an_escrow_continues_in_the_output_with_its_reference_signature() {
        let old = escrow(State::FundsLocked);
        let after = Datum { state: State::RefundRequested, ..old.datum.clone() };
        let other = Datum { reference_signature: vec![0x56; 16], ..old.datum.clone() };
        let outputs = [
            output(old.datum.buyer, 1_000_000, None),
            output(deployment().address(), 7_000_000, Some(other.to_cbor())),
            output(deployment().address(), 7_000_000, Some(after.to_cbor())),
        ];
        let Spent::Continues(new) = old.spent_into(&outputs) else { panic!("it goes on") };
        assert_eq!(new.datum, after);
        assert_eq!(old.spent_into(&outputs[..2]), Spent::Ended(Ending::Refunded));
    }

    #[test]
    fn an_escrows_end_follows_from_its_state() {
        for (state, ending) in [
            (State::FundsLocked, Ending::Refunded),
            (State::RefundRequested, Ending::Refunded),
            (State::RefundAuthorized, Ending::Refunded),
            (State::ResultSubmitted, Ending::Withdrawn),
            (State::WithdrawAuthorized, Ending::Withdrawn),
            (State::Disputed, Ending::Closed),
        ] {
            assert_eq!(escrow(state).spent_into(&[]), Spent::Ended(ending), "{state:?}");
        }
    }

    #[test]
    fn an_award_counts_for_the_party_with_more_in_tagged_outputs() {
        let disputed = escrow(State::Disputed);
        let tag = || Some(to_cbor(&output_reference(&disputed.utxo.reference)));
        let other_tag = Some(to_cbor(&output_reference(&TxRef { index: 9, ..disputed.utxo.reference })));
        let (buyer, seller) = (disputed.datum.buyer, disputed.datum.seller);
        let ending = |outputs: &[Utxo]| disputed.spent_into(outputs);
        let most = |to| output(to, 5_000_000, tag());
        let least = |to| output(to, 2_000_000, tag());
        assert_eq!(ending(&[most(buyer), least(seller)]), Spent::Ended(Ending::Refunded));
        assert_eq!(ending(&[least(buyer), most(seller)]), Spent::Ended(Ending::Withdrawn));
        assert_eq!(ending(&[least(buyer), least(seller)]), Spent::Ended(Ending::Closed));
        let in_full = disputed.utxo.value.lovelace.saturating_sub(disputed.datum.collateral_return).get();
        let won = || output(seller, in_full, tag());
        for more in [5_000_000, 9_000_000, 90_000_000] {
            let added = [least(buyer), won(), output(buyer, more, tag())];
            assert_eq!(ending(&added), Spent::Ended(Ending::Withdrawn), "{more} of the buyer's own beside it");
        }
        let untagged = [least(seller), output(buyer, 9_000_000, None), output(buyer, 9_000_000, other_tag)];
        assert_eq!(ending(&untagged), Spent::Ended(Ending::Withdrawn));
    }

    #[test]
    fn a_tag_counts_in_every_encoding_that_the_contract_takes() {
        let disputed = escrow(State::Disputed);
        let TxRef { tx, index } = disputed.utxo.reference;
        let index = u8::try_from(index).unwrap();
        let id = [&[0x58, 32][..], tx.as_bytes()].concat();
        let halves = [&[0x5f, 0x50][..], &tx.as_bytes()[..16], &[0x50], &tx.as_bytes()[16..], &[0xff]].concat();
        let definite = [&[0xd8, 121, 0x82][..], &id, &[index]].concat();
        let general = [&[0xd8, 102, 0x82, 0, 0x9f][..], &halves, &[0xc2, 0x41, index, 0xff]].concat();
        let in_full = disputed.utxo.value.lovelace.get();
        for tag in [definite.clone(), general] {
            let won = [output(disputed.datum.seller, in_full, Some(tag))];
            assert_eq!(disputed.spent_into(&won), Spent::Ended(Ending::Withdrawn));
        }
        for other in [vec![], definite[..definite.len() - 1].to_vec(), [definite, vec![0]].concat()] {
            let untagged = [output(disputed.datum.seller, in_full, Some(other))];
            assert_eq!(disputed.spent_into(&untagged), Spent::Ended(Ending::Closed));
        }
    }

    proptest! {
        #[test]
        fn no_escrow_can_end_in_two_ways(datum in any_datum()) {
            let ends = |action| Rule::find(action, &datum).is_some_and(|rule| matches!(rule.effect, Effect::End(_)));
            prop_assert!(Action::ALL.into_iter().filter(|action| ends(*action)).count() <= 1);
        }
    }
}
