//! Small records under keys: accounts, usage, forecasts, audit. They lie in named spaces, and keys
//! of a space are in the order of their bytes.
//!
//! A store has one writer at a time. A transaction sees the records as they were when it began, and
//! its own changes above them ([`View`]); the store learns of these when it commits.

mod interface;

mod view;

mod lmdb;
mod memory;

mod sealed;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use interface::{Changes, Item, Mark, RecordStore, Snapshot};
pub use lmdb::LmdbRecords;
pub use memory::{Commit, MemoryRecords, Spaces, State, StateSnapshot};
pub use sealed::SealedRecords;
pub use view::{Page, View, only_reads};
