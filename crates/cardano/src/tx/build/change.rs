//! Distributes change over outputs, each of which is filled up to the ledger's limits.

use std::collections::BTreeMap;

use super::bundle::{Bundle, TokenId};
use crate::params::ProtocolParameters;

/// Maximum number of CBOR bytes of a value without its assets: the array's header, nine bytes of lovelace, the policy
/// map's header.
const VALUE_BYTES: u64 = 1 + 9 + 3;
/// Maximum number of CBOR bytes of a policy without its assets: the id with its header and the asset map's header.
const POLICY_BYTES: u64 = 2 + 28 + 3;
/// Maximum number of CBOR bytes of an asset without its name: the name's header and nine bytes of quantity.
const ASSET_BYTES: u64 = 2 + 9;

/// Distributes assets over values, each of which is filled up to the ledger's maximum size. Returns a single empty
/// value if there are no assets. The values hold no lovelace yet.
pub(super) fn split(assets: &BTreeMap<TokenId, u128>, params: &ProtocolParameters) -> Vec<Bundle> {
    let mut done = Vec::new();
    let mut rest = assets.clone();
    loop {
        let group = take_group(&mut rest, params.max_value_size);
        done.push(Bundle { lovelace: 0, assets: group });
        if rest.is_empty() {
            return done;
        }
    }
}

/// Removes from `rest` as many assets as fit into one value of `limit` bytes, but at least one, and returns them.
fn take_group(rest: &mut BTreeMap<TokenId, u128>, limit: u64) -> BTreeMap<TokenId, u128> {
    let mut group: BTreeMap<TokenId, u128> = BTreeMap::new();
    let mut bytes = VALUE_BYTES;
    let mut over: BTreeMap<TokenId, u128> = BTreeMap::new();
    while let Some((asset, quantity)) = rest.pop_first() {
        let new_policy = group.last_key_value().is_none_or(|((policy, _), _)| *policy != asset.0);
        let name = u64::try_from(asset.1.0.len()).unwrap_or(u64::MAX);
        let more = name.saturating_add(ASSET_BYTES).saturating_add(if new_policy { POLICY_BYTES } else { 0 });
        let full = bytes.saturating_add(more);
        if full > limit && !group.is_empty() {
            rest.insert(asset, quantity);
            break;
        }
        bytes = full;
        let here = quantity.min(u64::MAX.into());
        if let Some(beyond) = quantity.checked_sub(here).filter(|beyond| *beyond > 0) {
            over.insert(asset.clone(), beyond);
        }
        group.insert(asset, here);
    }
    rest.append(&mut over);
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tx::build::{bundle::TokenName, fixtures};
    use proptest::prelude::*;

    fn asset(policy: u8, name: &[u8]) -> TokenId {
        ([policy; 28], TokenName(name.to_vec()))
    }

    #[test]
    fn no_assets_are_one_plain_value() {
        assert_eq!(split(&BTreeMap::new(), &fixtures::preprod()), [Bundle::default()]);
    }

    #[test]
    fn more_of_an_asset_than_an_output_can_hold_is_spread() {
        let most = u128::from(u64::MAX);
        let groups = split(&BTreeMap::from([(asset(1, b"a"), 2 * most + 5)]), &fixtures::preprod());
        let quantities: Vec<u128> = groups.iter().flat_map(|group| group.assets.values().copied()).collect();
        assert_eq!(quantities, [most, most, 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn change_outputs_fit_and_lose_no_asset(
            assets in proptest::collection::btree_map(
                (0u8..40, proptest::collection::vec(any::<u8>(), 0..=32)),
                1u128..(1 << 66), 0..600,
            ),
        ) {
            let params = fixtures::preprod();
            let assets: BTreeMap<TokenId, u128> = assets.into_iter().map(|((p, n), q)| (asset(p, &n), q)).collect();
            let groups = split(&assets, &params);
            for group in &groups {
                let full = Bundle { lovelace: u64::MAX, ..group.clone() };
                let bytes = full.to_cbor().unwrap().len() as u64;
                prop_assert!(bytes <= params.max_value_size);
            }
            prop_assert_eq!(Bundle::checked_sum(&groups).unwrap().assets, assets);
        }
    }
}
