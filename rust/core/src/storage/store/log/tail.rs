//! The end of a log.

use crate::storage::store::entries::Counts;

/// State of a log after some frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Position that the next frame begins at.
    pub(super) end: u64,
    /// Sequence of the last block.
    pub(super) sequence: u64,
    /// Counters; the bytes of all blocks that were ever appended.
    pub(super) counts: Counts,
    /// Checksum of the last head, which the next one repeats.
    pub(super) chain: u32,
}
