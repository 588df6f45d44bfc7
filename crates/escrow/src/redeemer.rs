//! The contract's actions and their redeemers.

use cardano::Lovelace;
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::codec::{DataReader, InvalidDatum, bytes, constr, integer, list, map, to_cbor};

/// An action of the contract, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// The seller collects the money.
    Withdraw,
    /// The buyer requests a refund. If there is a result already, this opens a dispute.
    SetRefundRequested,
    /// The buyer releases the money to the seller.
    AuthorizeWithdrawal,
    /// The buyer takes the money back.
    WithdrawRefund,
    /// Anyone pays out a disputed escrow according to the award that the arbiters signed.
    WithdrawDisputed,
    /// The seller submits the hash that commits to the delivered text.
    SubmitResult,
    /// The seller agrees to a refund.
    AuthorizeRefund,
}

impl Action {
    /// Every action, in the order of the contract's constructors.
    pub const ALL: [Self; 7] = [
        Self::Withdraw,
        Self::SetRefundRequested,
        Self::AuthorizeWithdrawal,
        Self::WithdrawRefund,
        Self::WithdrawDisputed,
        Self::SubmitResult,
        Self::AuthorizeRefund,
    ];

    /// Returns the action's name in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Withdraw => "Withdraw",
            Self::SetRefundRequested => "SetRefundRequested",
            Self::AuthorizeWithdrawal => "AuthorizeWithdrawal",
            Self::WithdrawRefund => "WithdrawRefund",
            Self::WithdrawDisputed => "WithdrawDisputed",
            Self::SubmitResult => "SubmitResult",
            Self::AuthorizeRefund => "AuthorizeRefund",
        }
    }
}

/// The value of an output in the contract's form: for each policy, the names and quantities of its assets. Lovelace has
/// an empty policy and an empty name. The order of the entries is part of what arbiters sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssetValue(pub Vec<(Vec<u8>, AssetQuantities)>);

/// Asset names of one policy, each with its quantity.
pub type AssetQuantities = Vec<(Vec<u8>, u64)>;

impl AssetValue {
    /// Creates a value that holds only lovelace. Zero becomes an empty list, because the contract rejects a quantity of
    /// 0.
    #[must_use]
    pub fn lovelace(amount: Lovelace) -> Self {
        match amount.get() {
            0 => Self::default(),
            quantity => Self(vec![(vec![], vec![(vec![], quantity)])]),
        }
    }

    /// Returns the amount of lovelace in this value.
    #[must_use]
    pub fn lovelace_of(&self) -> Lovelace {
        let amounts = self.0.iter().filter(|(policy, _)| policy.is_empty()).flat_map(|(_, names)| names);
        amounts.filter_map(|(name, quantity)| name.is_empty().then_some(*quantity)).filter_map(Lovelace::new).sum()
    }

    pub(crate) fn to_data(&self) -> PlutusData {
        let names = |names: &[(Vec<u8>, u64)]| {
            map(names.iter().map(|(name, quantity)| (bytes(name), integer(*quantity))).collect())
        };
        map(self.0.iter().map(|(policy, assets)| (bytes(policy), names(assets))).collect())
    }

    fn read(reader: &mut DataReader<'_>, what: &'static str) -> Result<Self, InvalidDatum> {
        let mut policies = Vec::new();
        let mut outer = reader.map(what)?;
        while reader.more(&mut outer)? {
            let policy = reader.bytes(what)?;
            let mut names = Vec::new();
            let mut inner = reader.map(what)?;
            while reader.more(&mut inner)? {
                names.push((reader.bytes(what)?, reader.number(what, i64::MAX.unsigned_abs())?));
            }
            reader.close(inner)?;
            policies.push((policy, names));
        }
        reader.close(outer)?;
        Ok(Self(policies))
    }
}

/// An arbiter's CIP-8 signature, split into the parts that the contract checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSignature {
    /// Ed25519 public key.
    pub verification_key: Vec<u8>,
    /// Protected headers of the COSE_Sign1, at most 256 bytes.
    pub protected_headers: Vec<u8>,
    /// Ed25519 signature of the COSE `Sig_structure`, 64 bytes.
    pub signature: Vec<u8>,
}

impl AdminSignature {
    fn to_data(&self) -> PlutusData {
        constr(0, vec![bytes(&self.verification_key), bytes(&self.protected_headers), bytes(&self.signature)])
    }

    fn read(reader: &mut DataReader<'_>) -> Result<Self, InvalidDatum> {
        let what = "admin_signature";
        let mut fields = reader.the_constr(0, what)?;
        let signature = Self {
            verification_key: reader.next(&mut fields)?.bytes(what)?,
            protected_headers: reader.next(&mut fields)?.bytes(what)?,
            signature: reader.next(&mut fields)?.bytes(what)?,
        };
        reader.close(fields)?;
        Ok(signature)
    }
}

/// A redeemer of the contract: an action with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeemer {
    /// An action without data.
    Plain(PlainAction),
    /// Settles a dispute ([`Action::WithdrawDisputed`]).
    WithdrawDisputed {
        /// Minimum that the buyer must get.
        buyer_value: AssetValue,
        /// Minimum that the seller must get.
        seller_value: AssetValue,
        /// The arbiters' signatures on the award.
        admin_signatures: Vec<AdminSignature>,
    },
}

/// An action whose redeemer carries no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAction(Action);

impl Redeemer {
    /// Creates the redeemer of an action without data. Returns `None` for [`Action::WithdrawDisputed`], which carries
    /// data.
    #[must_use]
    pub const fn plain(action: Action) -> Option<Self> {
        match action {
            Action::WithdrawDisputed => None,
            _ => Some(Self::Plain(PlainAction(action))),
        }
    }

    /// Returns the redeemer's action.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Self::Plain(PlainAction(action)) => *action,
            Self::WithdrawDisputed { .. } => Action::WithdrawDisputed,
        }
    }

    /// Encodes the redeemer as Plutus data.
    #[must_use]
    pub fn to_data(&self) -> PlutusData {
        let index = match self.action() {
            Action::Withdraw => 0,
            Action::SetRefundRequested => 1,
            Action::AuthorizeWithdrawal => 2,
            Action::WithdrawRefund => 3,
            Action::WithdrawDisputed => 4,
            Action::SubmitResult => 5,
            Action::AuthorizeRefund => 6,
        };
        let fields = match self {
            Self::Plain(_) => vec![],
            Self::WithdrawDisputed { buyer_value, seller_value, admin_signatures } => {
                let signatures = admin_signatures.iter().map(AdminSignature::to_data).collect();
                vec![buyer_value.to_data(), seller_value.to_data(), list(signatures)]
            }
        };
        constr(index, fields)
    }

    /// Encodes the redeemer as CBOR.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        to_cbor(&self.to_data())
    }

    /// Decodes a redeemer from CBOR.
    ///
    /// # Errors
    /// [`InvalidDatum`] if the bytes are not exactly one value of this type.
    pub fn from_cbor(cbor: &[u8]) -> Result<Self, InvalidDatum> {
        let what = "redeemer";
        let mut reader = DataReader::new(cbor)?;
        let (index, mut fields) = reader.constr(what)?;
        let index = usize::try_from(index).map_err(|_| InvalidDatum::Shape(what))?;
        let action = *Action::ALL.get(index).ok_or(InvalidDatum::Shape(what))?;
        let redeemer = match Self::plain(action) {
            Some(plain) => plain,
            None => Self::WithdrawDisputed {
                buyer_value: AssetValue::read(reader.next(&mut fields)?, "buyer_value")?,
                seller_value: AssetValue::read(reader.next(&mut fields)?, "seller_value")?,
                admin_signatures: read_signatures(reader.next(&mut fields)?)?,
            },
        };
        reader.close(fields)?;
        reader.end()?;
        Ok(redeemer)
    }
}

fn read_signatures(reader: &mut DataReader<'_>) -> Result<Vec<AdminSignature>, InvalidDatum> {
    let mut signatures = Vec::new();
    let mut open = reader.list("admin_signatures")?;
    while reader.more(&mut open)? {
        signatures.push(AdminSignature::read(reader)?);
    }
    reader.close(open)?;
    Ok(signatures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*, sample::select};

    fn any_value() -> impl Strategy<Value = AssetValue> {
        let names = vec((vec(any::<u8>(), 0..33), 0..=i64::MAX.unsigned_abs()), 0..4);
        vec((vec(any::<u8>(), 0..29), names), 0..4).prop_map(AssetValue)
    }

    fn any_redeemer() -> impl Strategy<Value = Redeemer> {
        let signature = (vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..300), vec(any::<u8>(), 0..70)).prop_map(
            |(verification_key, protected_headers, signature)| AdminSignature {
                verification_key,
                protected_headers,
                signature,
            },
        );
        let disputed = (any_value(), any_value(), vec(signature, 0..4)).prop_map(
            |(buyer_value, seller_value, admin_signatures)| Redeemer::WithdrawDisputed {
                buyer_value,
                seller_value,
                admin_signatures,
            },
        );
        prop_oneof![select(&Action::ALL[..]).prop_filter_map("carries nothing", Redeemer::plain), disputed]
    }

    #[test]
    fn plain_actions_are_empty_constructors_in_the_contracts_order() {
        for (index, action) in Action::ALL.into_iter().enumerate() {
            let Some(redeemer) = Redeemer::plain(action) else {
                assert_eq!(action, Action::WithdrawDisputed);
                continue;
            };
            let tag = u8::try_from(121 + index).unwrap();
            assert_eq!(redeemer.to_cbor(), [0xd8, tag, 0x80], "{}", action.name());
        }
    }

    #[test]
    fn unknown_redeemers_are_refused() {
        for cbor in ["d87a9f00ff", "d8798100", "d87d80", "d866820180ff", "00", "", "d87d9fa0a0ff", "d87980d87980"] {
            let cbor = hex::decode(cbor).unwrap();
            assert!(Redeemer::from_cbor(&cbor).is_err(), "{}", hex::encode(cbor));
        }
        assert_eq!(
            Redeemer::from_cbor(&[0xd9, 0x05, 0x00, 0x80]),
            Err(InvalidDatum::Shape("redeemer")),
            "constructor 7"
        );
    }

    #[test]
    fn lovelace_is_the_pair_of_the_empty_policy_and_the_empty_name() {
        let five = Lovelace::from_ada(5);
        assert_eq!(hex::encode(to_cbor(&AssetValue::lovelace(five).to_data())), "a140a1401a004c4b40");
        assert_eq!(hex::encode(to_cbor(&AssetValue::lovelace(Lovelace::ZERO).to_data())), "a0");
        assert_eq!(AssetValue::lovelace(five).lovelace_of(), five);
        assert_eq!(AssetValue::default().lovelace_of(), Lovelace::ZERO);
    }

    proptest! {
        #[test]
        fn a_redeemer_round_trips(redeemer in any_redeemer()) {
            prop_assert_eq!(Redeemer::from_cbor(&redeemer.to_cbor()), Ok(redeemer));
        }

        #[test]
        fn no_bytes_panic(cbor in vec(any::<u8>(), 0..200)) {
            let _ = Redeemer::from_cbor(&cbor);
            let disputed = [&[0xd8, 0x7d, 0x9f][..], &cbor].concat();
            let _ = Redeemer::from_cbor(&disputed);
        }
    }
}
