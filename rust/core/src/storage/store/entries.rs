//! Sealed blocks to be appended to the log or read from it, and the counters that come with them.

use super::cursor::Cursor;

/// Greatest number of sealed bytes that one read of the log or of names returns, unless a single
/// block is larger. Bounds memory, and the time that a read transaction stays open.
pub const READ_BYTES_MAX: usize = 4 << 20;

/// Counters, written in the same commit as the block that they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Records stored.
    pub rows: u64,
    /// Field values stored.
    pub values: u64,
    /// Records rejected one by one.
    pub rejected: u64,
    /// Batches stored.
    pub batches: u64,
    /// Bytes of the sealed blocks in the log. The store fills them in.
    pub log_bytes: u64,
}

impl StoreCounts {
    /// Adds the counters of another commit.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.rejected += other.rejected;
        self.batches += other.batches;
        self.log_bytes += other.log_bytes;
    }
}

/// A sealed block to be appended to the log.
#[derive(Clone, Debug, Default)]
pub struct NewBlock {
    /// The sealed bytes. Empty if only the counters are to be stored.
    pub sealed: Vec<u8>,
    /// Numbers that the block adds to the counters.
    pub counts: StoreCounts,
    /// New position of the import that the block belongs to.
    pub cursor: Option<Cursor>,
}

/// A sealed block of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log, counted from 1. Positions ascend in the order of the writes, and have
    /// no gaps at the end of the log.
    pub sequence: u64,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// State of the store for a reader that catches up from some position. All is of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// The sealed manifest, if the reader does not have it yet.
    pub manifest: Option<Vec<u8>>,
    /// Blocks up to this position are in the manifest's segments.
    pub compacted: u64,
    /// Seconds that rows are kept. 0 for ever.
    pub retention_seconds: u64,
    /// Last page of names. The names in the entries and the manifest are on this page or on earlier
    /// pages. 0 if the view has neither entries nor a manifest: its reader then needs no names.
    pub pages: u64,
    /// Last position of the log. A reader that has applied the entries up to it has everything.
    pub last: u64,
    /// Some blocks of the log from the reader's position on. Empty if there are none.
    pub entries: Vec<LogEntry>,
}
