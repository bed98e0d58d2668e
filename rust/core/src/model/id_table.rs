//! Ids that are found by the hashes of their names.

use hashbrown::HashTable;

/// Ids by the hashes of names, which are stored elsewhere.
#[derive(Default)]
pub(super) struct IdTable(HashTable<HashedId>);

/// An id, and half the hash of its name. The table needs the hash again when it grows.
struct HashedId {
    half: u32,
    id: u32,
}

impl IdTable {
    /// Bytes of a slot of the table.
    pub(super) const ENTRY_BYTES: usize = size_of::<HashedId>() + 1;

    /// Returns the id with this hash for which `is_it` returns true.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let half = half(hash);
        let found = self.0.find(whole(half), |entry| entry.half == half && is_it(entry.id));
        Some(found?.id)
    }

    /// Adds an id that the table does not have.
    pub(super) fn insert(&mut self, hash: u64, id: u32) {
        let half = half(hash);
        self.0.insert_unique(whole(half), HashedId { half, id }, |entry| whole(entry.half));
    }
}

fn half(hash: u64) -> u32 {
    u32::try_from(hash >> 32).expect("32 bits are left")
}

/// Makes a hash for the table from half of a hash. The table uses its lowest and its highest bits.
fn whole(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
