//! Sealed blocks on their way into the log and out of it, and the counters that go with them.

use super::cursor::Cursor;

/// Greatest number of sealed bytes that one read of the log or of names returns, unless a single
/// block is larger:
/// bounds memory and the time a read transaction stays open.
pub const READ_BYTES_MAX: usize = 4 << 20;

/// Counters, written in the same commit as the block that they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records stored.
    pub rows: u64,
    /// Field values stored.
    pub values: u64,
    /// Records rejected one by one.
    pub rejected: u64,
    /// Batches stored.
    pub batches: u64,
    /// Bytes of the sealed blocks that are in the log; filled in by the store.
    pub log_bytes: u64,
}

impl Counts {
    /// Adds those of another commit.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.rejected += other.rejected;
        self.batches += other.batches;
        self.log_bytes += other.log_bytes;
    }
}

/// A sealed block on its way into the log.
#[derive(Clone, Debug, Default)]
pub struct NewBlock {
    /// The sealed bytes; empty when there is nothing to store but counts.
    pub sealed: Vec<u8>,
    /// Addition of the block to the counters.
    pub counts: Counts,
    /// Position of the import that the block belongs to.
    pub cursor: Option<Cursor>,
}

/// A sealed block of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log, from 1, without gaps at the end: the order of writing.
    pub sequence: u64,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// State of the store for a reader at some position that catches up, out of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// The sealed manifest, where the reader does not have it yet.
    pub manifest: Option<Vec<u8>>,
    /// Blocks up to this position are in the manifest's segments.
    pub compacted: u64,
    /// Seconds that rows are kept, 0 for ever.
    pub retention_seconds: u64,
    /// Last page of names: those of all that is in the entries and the manifest are on it or before
    /// it. 0 where the view has no news, neither entries nor a manifest: then nobody looks.
    pub pages: u64,
    /// Last position of the log: a reader that has applied the entries up to there has all.
    pub last: u64,
    /// Some blocks of the log from the reader's position on; empty means none.
    pub entries: Vec<LogEntry>,
}
