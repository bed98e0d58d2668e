//! Counts of a store, read without opening it.

use super::entries::Counts;
use super::interface::Space;

/// Counts of a store, read without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Counters since the store was created.
    pub counts: Counts,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Number of series registered.
    pub series: u64,
    /// Number of segments stored.
    pub segments: u64,
    /// Bytes of all files of the store.
    pub space: Space,
}
