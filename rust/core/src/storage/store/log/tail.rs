//! The end of a log.

use crate::storage::store::entries::StoreCounts;

/// State of a log behind some frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Position of the next frame.
    pub(super) end: u64,
    /// Sequence of the last block.
    pub(super) sequence: u64,
    /// Counters, with the bytes of all blocks that were ever appended.
    pub(super) counts: StoreCounts,
    /// Checksum of the last head, which the next head repeats.
    pub(super) chain: u32,
}
