//! The log: append-only files beside the plane (layout in `docs/format.md`, reasons in
//! `docs/decisions/0024-own-log.md`).
//!
//! A group of batches is one positioned write and one sync. Groups reach across processes: appending
//! needs a short lock, and whoever syncs covers all that was written before, by anybody.

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

pub(super) use self::handle::{Log, Opening};
pub(super) use self::peek::{file_bytes, peek};
pub(super) use self::recovery::Taken;
pub(super) use self::shared::Shared;
