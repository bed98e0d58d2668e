//! Counts of a store, read without opening it.

use super::entries::StoreCounts;
use super::interface::Space;

/// Counts of a store, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeekedCounts {
    /// Counters since the store was created.
    pub counts: StoreCounts,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Number of series registered.
    pub series: u64,
    /// Number of segments stored.
    pub segments: u64,
    /// Bytes of all files of the store.
    pub space: Space,
}
