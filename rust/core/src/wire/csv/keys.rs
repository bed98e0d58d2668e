//! Finds series of rows by the bytes of their tags, within one text.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Series and table of rows with the same measurement and tags, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyTable {
    pub(super) series: u32,
    pub(super) table: u32,
}

struct CsvKey {
    /// Range of its bytes in the arena.
    start: usize,
    end: usize,
    known: KeyTable,
}

/// Keys in the order of their first rows: files often repeat their entities in the same order.
#[derive(Default)]
pub(super) struct CsvKeys {
    arena: Vec<u8>,
    list: Vec<CsvKey>,
    index: HashTable<usize>,
    /// Index of the key that the next row probably has.
    next: usize,
    hasher: RandomState,
}

impl CsvKeys {
    /// Returns the key that probably comes next.
    #[inline]
    pub(super) fn expected(&self) -> Option<&[u8]> {
        let key = self.list.get(self.next)?;
        self.arena.get(key.start..key.end)
    }

    /// Returns series and table of `key`, if it is known.
    #[inline]
    pub(super) fn find(&mut self, key: &[u8]) -> Option<KeyTable> {
        let at = if self.expected() == Some(key) { self.next } else { self.position(key)? };
        self.next = at + 1;
        Some(self.list.get(at)?.known)
    }

    pub(super) fn add(&mut self, key: &[u8], known: KeyTable) {
        if self.position(key).is_some() {
            return;
        }
        let start = self.arena.len();
        self.arena.extend_from_slice(key);
        let at = self.list.len();
        self.list.push(CsvKey { start, end: self.arena.len(), known });
        self.next = at + 1;
        let Self { arena, list, index, hasher, .. } = self;
        let hash_at = |at: &usize| {
            hasher.hash_one(list.get(*at).and_then(|key| arena.get(key.start..key.end)))
        };
        index.insert_unique(hash_at(&at), at, hash_at);
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        let bytes_of =
            |at: usize| self.list.get(at).and_then(|key| self.arena.get(key.start..key.end));
        let hash = self.hasher.hash_one(Some(key));
        self.index.find(hash, |at| bytes_of(*at) == Some(key)).copied()
    }
}
