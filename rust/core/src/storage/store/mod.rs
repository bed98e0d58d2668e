//! Stores of a tenant's sealed bytes: their promises, the store in memory, the store on disk.

mod byte_locks;
mod cursor;
mod entries;
mod names;
mod snapshot;

mod interface;

mod peeked;

mod planes;

mod group_commit;
mod log;
mod memory;
mod segment_files;

mod lmdb;

mod directory;

pub use cursor::{CURSOR_BYTES_MAX, Cursor};
pub use directory::Directory;
pub use entries::{Counts, LogEntry, NewBlock, View};
pub use group_commit::GroupCommit;
pub use interface::{CompactionLock, Link, NewSegment, SegmentId, SegmentsLock, Space, Store};
pub use lmdb::LmdbStore;
pub(crate) use lmdb::{decode_names, encode_names};
pub use log::flaw;
pub use memory::MemoryStore;
pub use names::{FirstIds, NamesPage, NewNames};
pub use peeked::Peeked;
pub use planes::Planes;
pub use snapshot::Snapshot;
