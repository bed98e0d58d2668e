//! Small records under keys: accounts, usage, forecasts, audit. Records lie in named spaces. Keys
//! of a space are in the order of their bytes.
//!
//! A store has one writer at a time. A transaction ([`RecordTransaction`]) sees the records as they
//! were when it began, and its changes above them. The commit hands these changes to the store.

mod interface;

mod view;

mod lmdb;
mod memory;

mod sealed;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use interface::{Changes, Item, RecordSnapshot, RecordStore, StateMark};
pub use lmdb::LmdbRecords;
pub use memory::{CommitFn, MemoryRecords, RecordsVersion, Spaces, StateSnapshot};
pub use sealed::SealedRecords;
pub use view::{RecordTransaction, RecordsPage, only_reads};
