//! Awards: the statements that arbiters sign to settle disputes. An award names the escrow output to be spent and the
//! amount that each party gets.

use cardano::{Lovelace, TxHash, TxRef, hash::blake2b};
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::{
    codec::{DataReader, InvalidDatum, bytes, constr, integer, to_cbor},
    datum::Datum,
    evidence::Winner,
    redeemer::AssetValue,
};

/// An award: the minimum value that each party gets from a disputed escrow. Arbiters also sign the reference of the
/// escrow's output, so a signature cannot settle any other escrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisputeWithdrawal {
    /// Reference of the disputed escrow's output.
    pub own_ref: TxRef,
    /// Minimum that the buyer gets.
    pub buyer_value: AssetValue,
    /// Minimum that the seller gets.
    pub seller_value: AssetValue,
}

/// The amounts in lovelace into which a disputed escrow is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Amount for the buyer.
    #[serde(rename = "buyerLovelace")]
    pub buyer: Lovelace,
    /// Amount for the seller.
    #[serde(rename = "sellerLovelace")]
    pub seller: Lovelace,
}

impl Split {
    /// Divides the locked lovelace of a dispute that `winner` wins. A winning buyer gets everything; a winning seller
    /// gets everything but the buyer's collateral. Returns `None` if less than the collateral is locked.
    #[must_use]
    pub fn of(winner: Winner, datum: &Datum, locked: Lovelace) -> Option<Self> {
        match winner {
            Winner::Buyer => Some(Self { buyer: locked, seller: Lovelace::ZERO }),
            Winner::Seller => {
                let seller = locked.checked_sub(datum.collateral_return)?;
                Some(Self { buyer: datum.collateral_return, seller })
            }
        }
    }
}

impl DisputeWithdrawal {
    /// Creates the award for an escrow output that holds no native tokens.
    #[must_use]
    pub fn new(own_ref: TxRef, split: Split) -> Self {
        Self {
            own_ref,
            buyer_value: AssetValue::lovelace(split.buyer),
            seller_value: AssetValue::lovelace(split.seller),
        }
    }

    /// Returns the digest that arbiters sign: the BLAKE2b-224 hash of [`Self::to_cbor`].
    #[must_use]
    pub fn digest(&self) -> [u8; 28] {
        blake2b(&self.to_cbor())
    }

    /// Encodes the award as CBOR, byte for byte as `serialiseData` writes it on the chain.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        let own_ref = output_reference(&self.own_ref);
        to_cbor(&constr(0, vec![own_ref, self.buyer_value.to_data(), self.seller_value.to_data()]))
    }
}

/// Encodes an output reference as Plutus V3 data. A payout carries such a reference as its inline datum, to name the
/// escrow from which it is paid.
#[must_use]
pub fn output_reference(reference: &TxRef) -> PlutusData {
    constr(0, vec![bytes(reference.tx.as_bytes()), integer(reference.index.into())])
}

/// Decodes the output reference in a payout's datum.
///
/// Any encoding is accepted, because the contract compares data rather than bytes, and the submitter of an award
/// chooses the encoding.
pub(crate) fn read_output_reference(cbor: &[u8]) -> Result<TxRef, InvalidDatum> {
    const TAG: &str = "output reference";
    let mut reader = DataReader::new(cbor)?;
    let mut open = reader.the_constr(0, TAG)?;
    let tx = TxHash::new(reader.next(&mut open)?.fixed_bytes(TAG)?);
    let index = reader.next(&mut open)?.number(TAG, u16::MAX.into())?;
    reader.close(open)?;
    reader.end()?;
    Ok(TxRef { tx, index: u16::try_from(index).map_err(|_| InvalidDatum::Range(TAG))? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::tests::published;
    use cardano::TxHash;

    const OWN: TxRef = TxRef { tx: TxHash::new([0xcd; 32]), index: 3 };

    #[test]
    fn the_intent_is_written_as_the_chain_serialises_it() {
        let split = Split { buyer: Lovelace::from_ada(7), seller: Lovelace::ZERO };
        let intent = DisputeWithdrawal::new(OWN, split);
        // Constr 0 [Constr 0 [id, 3], {"": {"": 7000000}}, {}], with indefinite lists and definite maps (plutus-core,
        // `Data.hs`).
        let expected = format!("d8799fd8799f5820{}03ffa140a1401a006acfc0a0ff", "cd".repeat(32));
        assert_eq!(hex::encode(intent.to_cbor()), expected);
        assert_eq!(intent.digest(), blake2b::<28>(&hex::decode(expected).unwrap()));
    }

    #[test]
    fn each_part_of_the_intent_is_signed() {
        let split = Split { buyer: Lovelace::from_ada(2), seller: Lovelace::from_ada(5) };
        let digest = DisputeWithdrawal::new(OWN, split).digest();
        for other in [
            DisputeWithdrawal::new(TxRef { index: 4, ..OWN }, split),
            DisputeWithdrawal::new(TxRef { tx: TxHash::new([0xce; 32]), ..OWN }, split),
            DisputeWithdrawal::new(OWN, Split { buyer: Lovelace::from_ada(3), ..split }),
            DisputeWithdrawal::new(OWN, Split { seller: Lovelace::from_ada(6), ..split }),
            DisputeWithdrawal::new(OWN, Split { buyer: split.seller, seller: split.buyer }),
        ] {
            assert_ne!(other.digest(), digest, "{other:?}");
        }
    }

    #[test]
    fn the_winner_gets_all_but_the_buyers_collateral() {
        let datum = published();
        let locked = Lovelace::from_ada(7);
        let buyer_wins = Split { buyer: locked, seller: Lovelace::ZERO };
        assert_eq!(Split::of(Winner::Buyer, &datum, locked), Some(buyer_wins));
        let seller_wins =
            Split { buyer: datum.collateral_return, seller: locked.saturating_sub(datum.collateral_return) };
        assert_eq!(Split::of(Winner::Seller, &datum, locked), Some(seller_wins));
        assert_eq!(Split::of(Winner::Seller, &datum, Lovelace::from_ada(1)), None);
    }
}
