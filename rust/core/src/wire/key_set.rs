//! The keys of an object, to find duplicates.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

/// Up to this number of keys, comparing with each key is faster than hashing.
const LINEAR_KEYS_MAX: usize = 12;

/// Room that is kept for the next object, as a multiple of the keys. Clearing takes time in
/// proportion to the room, so a large object must not leave its room to small objects after it.
const ROOM_MAX: usize = 16;

/// A set of unescaped keys. It keeps its memory from object to object.
#[derive(Default)]
pub(super) struct KeySet<'a> {
    keys: Vec<Cow<'a, str>>,
    /// Indices into `keys`. Used only above [`LINEAR_KEYS_MAX`] keys.
    index: HashTable<usize>,
    hasher: RandomState,
}

impl<'a> KeySet<'a> {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        if self.index.capacity() > ROOM_MAX * self.index.len() {
            self.index = HashTable::new();
        } else {
            self.index.clear();
        }
    }

    /// Adds `key`. Returns true if it was new.
    pub(super) fn insert(&mut self, key: Cow<'a, str>) -> bool {
        self.earlier(key).is_none()
    }

    /// Returns the index of the key equal to `key` among the distinct keys. If there is none, adds
    /// `key` and returns `None`.
    pub(super) fn earlier(&mut self, key: Cow<'a, str>) -> Option<usize> {
        let Self { keys, index, hasher } = self;
        let hash_of = |key: &str| hasher.hash_one(key);
        let rehash = |&at: &usize| keys.get(at).map_or(0, |key| hash_of(key));
        if keys.len() < LINEAR_KEYS_MAX {
            if let Some(at) = keys.iter().position(|earlier| *earlier == key) {
                return Some(at);
            }
        } else {
            if index.is_empty() {
                for (at, key) in keys.iter().enumerate() {
                    index.insert_unique(hash_of(key), at, rehash);
                }
            }
            let hash = hash_of(&key);
            if let Some(&at) = index.find(hash, |&at| keys.get(at) == Some(&key)) {
                return Some(at);
            }
            index.insert_unique(hash, keys.len(), rehash);
        }
        keys.push(key);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_object_leaves_no_room_that_small_ones_pay_for() {
        let mut set = KeySet::default();
        for count in [10_000, 20] {
            assert!((0..count).all(|key| set.insert(key.to_string().into())));
            set.clear();
        }
        assert!(set.index.capacity() <= ROOM_MAX * 20);
    }

    #[test]
    fn each_key_is_new_once() {
        let mut set = KeySet::default();
        for round in 0..2 {
            for key in 0..100 {
                assert!(set.insert(key.to_string().into()), "{key} in round {round}");
                assert!(!set.insert("0".into()));
            }
            assert!((0..100).all(|key| set.earlier(key.to_string().into()) == Some(key)));
            set.clear();
        }
    }
}
