//! The embedded store: one LMDB environment per tenant, `plane.mdb` (layout in `docs/format.md`).
//!
//! Transactions are short. A read copies its records and ends before they are decoded. A write
//! holds the lock for one group of blocks. LMDB's lock puts the writes of all processes in order.

mod commit_marks;
mod disk_space;
mod errors;
mod file;
mod open_guard;
mod records;

mod check;

mod head_pages;

mod environment;

mod tables;

mod store;

mod copies;
mod key_turns;
mod opening;
mod peek;
mod reads;
mod verify;

#[cfg(test)]
mod tests;

pub(in crate::storage) use disk_space::reserved_lock_file;
pub(in crate::storage) use open_guard::OpenGuard;
pub use records::{decode_names, encode_names};
pub use store::LmdbStore;
