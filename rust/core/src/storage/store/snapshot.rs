//! Numbers and manifest of a whole store at one instant, as a backup saves and a restore loads
//! them.

use super::entries::StoreCounts;
use super::names::FirstIds;

/// State of a store without its names, blocks and segments, all of one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreSnapshot {
    /// Last position of the log, compacted or not.
    pub log_last: u64,
    /// Last page of names.
    pub names_last: u64,
    /// Counters.
    pub counts: StoreCounts,
    /// Blocks up to this position are in the manifest's segments.
    pub compacted: u64,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Seconds that rows are kept. 0 for ever.
    pub retention_seconds: u64,
    /// First ids of the next page of names.
    pub next_ids: FirstIds,
    /// Cursors of imports, encoded.
    pub cursors: Vec<u8>,
    /// The sealed manifest. `None` if no block was compacted yet.
    pub manifest: Option<Vec<u8>>,
}
