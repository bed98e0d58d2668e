//! Counts of a store that need not be open.

use super::entries::Counts;
use super::interface::Space;

/// Counts of a store that need not be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Counters since the store was created.
    pub counts: Counts,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Series registered.
    pub series: u64,
    /// Segments that are kept.
    pub segments: u64,
    /// Bytes of all that is kept.
    pub space: Space,
}
