//! Stores of a tenant's sealed bytes: their promises, the store in memory, the store on disk.

mod byte_locks;
mod cursor;
mod entries;
mod names;
mod snapshot;

mod interface;

mod group_commit;
mod log;
mod memory;
mod segment_files;

mod lmdb;

pub use cursor::{CURSOR_BYTES_MAX, Cursor};
pub use entries::{Counts, LogEntry, NewBlock, View};
pub use interface::{CompactionLock, Link, NewSegment, SegmentId, SegmentsLock, Space, Store};
pub use lmdb::{LmdbStore, Peeked};
pub(crate) use lmdb::{decode_names, encode_names};
pub use log::flaw;
pub use memory::MemoryStore;
pub use names::{FirstIds, NamesPage, NewNames};
pub use snapshot::Snapshot;
