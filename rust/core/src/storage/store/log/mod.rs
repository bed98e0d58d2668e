//! The log: append-only files next to the plane file (layout in `docs/format.md`, reasons in
//! `docs/decisions/0024-own-log.md`).
//!
//! A group of batches takes one positioned write and one sync. Groups reach across processes:
//! appending needs a short lock, and a sync covers all frames written before it, by any process.

mod tail;

mod file;
mod files;
mod frame;
mod marks;

mod mutex;
mod turns;

mod shared;

mod index;
mod recovery;
mod writer;

mod handle;

mod append;
mod peek;
mod rotation;
mod visible;

#[cfg(test)]
mod tests;

pub(super) use self::handle::{Log, OpenPermit};
pub(super) use self::peek::{file_bytes, peek};
pub(super) use self::recovery::CompactedLog;
pub(super) use self::shared::MappedFile;
