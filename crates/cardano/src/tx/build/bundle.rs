//! Lovelace and native assets in the ledger's encoding, with checked sums.

use std::{cmp::Ordering, collections::BTreeMap};

use pallas_codec::minicbor::{Encoder, encode};

use super::error::BuildError;
use crate::{
    chain::{AssetUnit, Value},
    money::Lovelace,
};

/// Number of hexadecimal digits of a policy id.
const POLICY_HEX: usize = 56;
/// Maximum number of hexadecimal digits of an asset name, which has at most 32 bytes.
const MAX_NAME_HEX: usize = 64;

/// Name of a native asset. Shorter names sort first, as in the keys of a canonical CBOR map (RFC 7049, section 3.9).
/// Hardware wallets sign only canonical CBOR (CIP-21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenName(pub(super) Vec<u8>);

impl Ord for TokenName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for TokenName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Policy id and name of a native asset.
pub(super) type TokenId = ([u8; 28], TokenName);

/// The total value of one or several outputs. Assets with a quantity of zero are left out.
///
/// A single output holds at most `u64::MAX` of an asset, but several outputs together can hold more. Quantities are
/// therefore 128 bits wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) lovelace: u64,
    pub(super) assets: BTreeMap<TokenId, u128>,
}

impl Bundle {
    pub(super) fn read(value: &Value) -> Result<Self, BuildError> {
        let mut assets = BTreeMap::new();
        for (unit, &quantity) in value.assets.iter().filter(|(_, quantity)| **quantity > 0) {
            assets.insert(read_unit(unit)?, quantity.into());
        }
        Ok(Self { lovelace: value.lovelace.get(), assets })
    }

    pub(super) fn checked_add(mut self, other: &Self) -> Option<Self> {
        self.lovelace = self.lovelace.checked_add(other.lovelace)?;
        for (asset, quantity) in &other.assets {
            let sum = self.assets.entry(asset.clone()).or_default();
            *sum = sum.checked_add(*quantity)?;
        }
        Some(self)
    }

    pub(super) fn checked_sum<'a>(bundles: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        bundles.into_iter().try_fold(Self::default(), Self::checked_add)
    }

    /// Returns the assets of which `self` holds less than `wanted`, each with the missing quantity.
    pub(super) fn assets_short_of<'a>(&self, wanted: &'a Self) -> Vec<(&'a TokenId, u128)> {
        let short = |(asset, quantity): (&'a TokenId, &u128)| {
            let missing = quantity.saturating_sub(self.assets.get(asset).copied().unwrap_or_default());
            (missing > 0).then_some((asset, missing))
        };
        wanted.assets.iter().filter_map(short).collect()
    }

    /// Returns the assets that remain after `spent` is subtracted. `self` must hold at least `spent`.
    pub(super) fn assets_without(&self, spent: &Self) -> BTreeMap<TokenId, u128> {
        let left = |(asset, quantity): (&TokenId, &u128)| {
            let left = quantity.saturating_sub(spent.assets.get(asset).copied().unwrap_or_default());
            (left > 0).then(|| (asset.clone(), left))
        };
        self.assets.iter().filter_map(left).collect()
    }

    pub(super) fn to_value(&self) -> Result<Value, BuildError> {
        let mut assets = BTreeMap::new();
        for (asset, quantity) in &self.assets {
            assets.insert(write_unit(asset), one_output(*quantity)?);
        }
        Ok(Value { lovelace: Lovelace::new(self.lovelace).ok_or(BuildError::OutOfRange)?, assets })
    }

    /// Encodes the value as part of an output (Conway's CDDL, `value`), in canonical order.
    pub(super) fn to_cbor(&self) -> Result<Vec<u8>, BuildError> {
        let mut policies: BTreeMap<[u8; 28], Vec<(&TokenName, u64)>> = BTreeMap::new();
        for ((policy, name), quantity) in &self.assets {
            policies.entry(*policy).or_default().push((name, one_output(*quantity)?));
        }
        let mut encoder = Encoder::new(Vec::new());
        self.write(&policies, &mut encoder).map_err(|_| BuildError::OutOfRange)?;
        Ok(encoder.into_writer())
    }

    fn write<W: encode::Write>(
        &self,
        policies: &BTreeMap<[u8; 28], Vec<(&TokenName, u64)>>,
        encoder: &mut Encoder<W>,
    ) -> Result<(), encode::Error<W::Error>> {
        if policies.is_empty() {
            encoder.u64(self.lovelace)?;
            return Ok(());
        }
        encoder.array(2)?.u64(self.lovelace)?.map(length(policies.len()))?;
        for (policy, tokens) in policies {
            encoder.bytes(policy)?.map(length(tokens.len()))?;
            for (name, quantity) in tokens {
                encoder.bytes(&name.0)?.u64(*quantity)?;
            }
        }
        Ok(())
    }
}

fn length(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn one_output(quantity: u128) -> Result<u64, BuildError> {
    u64::try_from(quantity).map_err(|_| BuildError::OutOfRange)
}

/// Formats an asset as Blockfrost's `unit`: policy id and name in hex without a separator.
pub(super) fn write_unit((policy, name): &TokenId) -> AssetUnit {
    let mut unit = hex::encode(policy);
    unit.push_str(&hex::encode(&name.0));
    unit
}

fn read_unit(unit: &str) -> Result<TokenId, BuildError> {
    let malformed = BuildError::Malformed { what: "a native asset's unit" };
    let parts = unit.split_at_checked(POLICY_HEX).filter(|(_, name)| name.len() <= MAX_NAME_HEX);
    let (policy, name) = parts.ok_or_else(|| malformed.clone())?;
    let policy = hex::decode(policy).ok().and_then(|bytes| bytes.try_into().ok());
    let name = hex::decode(name).ok();
    policy.zip(name.map(TokenName)).ok_or(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(lovelace: u64, assets: &[(&str, u64)]) -> Value {
        Value {
            lovelace: Lovelace::new(lovelace).unwrap(),
            assets: assets.iter().map(|(unit, quantity)| ((*unit).to_owned(), *quantity)).collect(),
        }
    }

    #[test]
    fn a_unit_is_a_policy_and_at_most_32_bytes_of_name() {
        let policy = "ab".repeat(28);
        for valid in [policy.clone(), format!("{policy}00"), format!("{policy}{}", "ff".repeat(32))] {
            let bundle = Bundle::read(&value(1, &[(&valid, 5)])).unwrap();
            assert_eq!(bundle.to_value().unwrap(), value(1, &[(&valid, 5)]));
        }
        let bad =
            [policy[2..].to_owned(), format!("{policy}0"), format!("{policy}{}", "ff".repeat(33)), "é".repeat(28)];
        for bad in bad {
            assert!(Bundle::read(&value(1, &[(&bad, 5)])).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_asset_of_quantity_zero_is_no_asset() {
        assert_eq!(
            Bundle::read(&value(1, &[(&"ab".repeat(28), 0)])).unwrap(),
            Bundle { lovelace: 1, ..Bundle::default() }
        );
    }

    #[test]
    fn a_sum_beyond_one_output_is_kept_but_not_encoded() {
        let unit = "ab".repeat(28);
        let most = Bundle::read(&value(1, &[(&unit, u64::MAX)])).unwrap();
        let one = Bundle::read(&value(1, &[(&unit, 1)])).unwrap();
        let sum = most.checked_add(&one).unwrap();
        assert_eq!(sum.assets.values().sum::<u128>(), u128::from(u64::MAX) + 1);
        assert_eq!(sum.to_value(), Err(BuildError::OutOfRange));
        assert_eq!(sum.to_cbor(), Err(BuildError::OutOfRange));
    }

    #[test]
    fn shorter_names_are_written_first() {
        let unit = |name: &str| format!("{}{name}", "ab".repeat(28));
        let (long, short, none) = (unit("6161"), unit("62"), unit(""));
        let written = Bundle::read(&value(5, &[(&long, 1), (&short, 2), (&none, 3)])).unwrap().to_cbor().unwrap();
        let expected = format!("8205a1581c{}a3400341620242616101", "ab".repeat(28));
        assert_eq!(hex::encode(written), expected);
    }

    proptest! {
        #[test]
        fn the_rest_and_the_spent_part_add_up_to_the_whole(
            held in proptest::collection::vec(1u64..1000, 4), part in proptest::collection::vec(0u64..1000, 4),
        ) {
            let bundle = |quantities: &[u64]| {
                let units: Vec<String> = (0..4).map(|n| format!("{}{n:02}", "ab".repeat(28))).collect();
                let assets: Vec<(&str, u64)> = units.iter().map(String::as_str).zip(quantities.iter().copied()).collect();
                Bundle::read(&value(0, &assets)).unwrap()
            };
            let spent: Vec<u64> = held.iter().zip(&part).map(|(held, part)| *held.min(part)).collect();
            let (held, spent) = (bundle(&held), bundle(&spent));
            let left = Bundle { lovelace: 0, assets: held.assets_without(&spent) };
            prop_assert_eq!(left.checked_add(&spent), Some(held));
        }
    }
}
