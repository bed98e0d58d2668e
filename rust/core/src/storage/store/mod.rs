//! Stores of a tenant's sealed bytes: their promises, the store in memory, the store on disk.

mod cursor;
mod log;
mod names;
mod snapshot;

mod interface;

mod group_commit;
mod memory;
mod segment_files;

mod lmdb;

pub use cursor::{CURSOR_BYTES_MAX, Cursor};
pub use interface::{CompactionLock, Link, NewSegment, SegmentId, SegmentsLock, Store};
pub use lmdb::{LmdbStore, Peeked};
pub(crate) use lmdb::{decode_names, encode_names};
pub use log::{Counts, LogEntry, NewBlock, View};
pub use memory::MemoryStore;
pub use names::{FirstIds, NamesPage, NewNames};
pub use snapshot::Snapshot;
