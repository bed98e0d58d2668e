//! Stores of a tenant's sealed bytes: their promises, the store in memory, and the store on disk.

mod byte_locks;
mod cursor;
mod entries;
mod locks;
mod names;
mod snapshot;

mod key_turns;

mod interface;

mod peeked;

mod planes;

mod futex;
mod gathering;

mod threads;

mod committer;
mod log;
mod memory;
mod segment_files;

pub(in crate::storage) mod lmdb;

mod directory;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use committer::{Commit, CommitSeat, Committer};
pub use cursor::{CURSOR_BYTES_MAX, CURSORS_MAX, Cursor, decode_cursors, encode_cursors};
pub use directory::DirectoryPlanes;
pub use entries::{LogEntry, LogView, NewBlock, READ_BYTES_MAX, StoreCounts};
pub use gathering::{GroupCounts, Patience};
pub use interface::{Link, NewSegment, SegmentId, Space, Store};
pub use key_turns::KeyTurns;
pub use lmdb::LmdbStore;
pub use lmdb::{decode_names, encode_names};
pub use locks::{CompactionLock, KeyLock, SegmentsLock};
pub use memory::MemoryStore;
pub use names::{FirstIds, NamesPage, NewNames};
pub use peeked::PeekedCounts;
pub use planes::Planes;
pub use snapshot::StoreSnapshot;
