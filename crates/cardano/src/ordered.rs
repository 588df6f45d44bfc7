//! Ordered collections, filled one by one. `collect` sorts what it gets first, and each of its uses brings a sort of its own
//! into the program: seven kilobytes of WebAssembly.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Map, Value};

/// A set of these.
#[must_use]
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for item in items {
        set.insert(item);
    }
    set
}

/// A map of these; of several values for a key the last.
#[must_use]
pub fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.insert(key, value);
    }
    map
}

/// A JSON object with these members.
#[must_use]
pub fn object<N: Into<String>>(members: impl IntoIterator<Item = (N, Value)>) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in members {
        object.insert(name.into(), value);
    }
    object
}

/// These in the order of their keys, equal ones as they were.
#[must_use]
pub fn by_key<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    let keys: Vec<Option<K>> = items.iter().map(|item| item.as_ref().map(&key)).collect();
    let order = order(items.len(), &|a, b| keys.get(a).cmp(&keys.get(b)));
    order.into_iter().filter_map(|place| items.get_mut(place)?.take()).collect()
}

/// The places of so many in order: the one sort of the program.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_keep_their_order_and_of_equal_names_the_last_counts() {
        assert_eq!(by_key(["cc", "a", "bb", "b"], |text| text.len()), ["a", "b", "cc", "bb"]);
        assert_eq!(map([(1, 'a'), (0, 'b'), (1, 'c')]), map([(0, 'b'), (1, 'c')]));
        assert_eq!(object([("a", 1.into()), ("a", 2.into())]), object([("a", 2.into())]));
        assert!(set([3, 1, 3]).into_iter().eq([1, 3]));
    }
}
