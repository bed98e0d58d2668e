//! What every store of a tenant promises, whatever keeps the bytes.
//!
//! A store sees only sealed bytes and keyed hashes; what they mean is known above it. The promises
//! are weak enough for a replicated store behind a network: names are idempotent by hash, blocks
//! are only ever appended, and no call needs a transaction across another.

#[cfg(test)]
mod child;
mod group;
mod lmdb;
mod lmdb_check;
mod lmdb_env;
mod lmdb_records;
mod memory;

pub use lmdb::LmdbStore;
pub use memory::MemoryStore;

use crate::batch::{FieldId, FieldType, SeriesId};
use crate::error::Result;

/// Keyed hash of a series name or a field name ([`crate::seal::Sealer::name_hash`]).
pub type NameHash = [u8; 16];

/// Names to register, and their sealed spelling in the same order.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// Series by keyed hash.
    pub series: Vec<NameHash>,
    /// Fields by keyed hash, each with the type it is about to be used with.
    pub fields: Vec<(NameHash, FieldType)>,
    /// The names themselves, sealed: series first, then fields.
    pub sealed_names: Vec<u8>,
}

/// The winners: what every process sees under these hashes from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Ids of [`Registration::series`], in order.
    pub series: Vec<SeriesId>,
    /// Ids and types of [`Registration::fields`], in order; `None` for a field that was not
    /// registered because another field of the same call conflicts.
    pub fields: Vec<Option<(FieldId, FieldType)>>,
}

/// One stored page of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesPage {
    /// Position in the order of registration, from 1.
    pub sequence: u64,
    /// Ids of the series on the page, in order.
    pub series: Vec<SeriesId>,
    /// Ids and types of the fields on the page, in order.
    pub fields: Vec<(FieldId, FieldType)>,
    /// The sealed names, series first.
    pub sealed_names: Vec<u8>,
}

/// What is counted in the same commit as the block it belongs to.
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
    /// Bytes of sealed blocks; filled in by the store.
    pub log_bytes: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
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
    /// What the block adds to the counters.
    pub counts: Counts,
}

/// A sealed block of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log, from 1, without gaps at the end: the order of writing.
    pub sequence: u64,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// The bytes of one tenant. Every method may be called from any thread.
///
/// # Errors
/// Every method returns the errors of [`crate::error::Error`] that the machine causes; none of
/// them means that part of a call took effect, except [`crate::error::Error::Poisoned`] and
/// [`crate::error::Error::Io`] out of [`Self::append`]: then the block may or may not be stored.
pub trait Store: Send + Sync {
    /// Gives every name its id: the one it already has, else a fresh one. Nothing is registered
    /// where a field already has another type; the caller finds that type in the answer. Calling
    /// again with the same names gives the same ids.
    ///
    /// # Errors
    /// See [`Store`].
    fn register(&self, names: &Registration) -> Result<Registered>;

    /// Pages of names registered after page `after`, oldest first, at least one if there is any.
    ///
    /// # Errors
    /// See [`Store`].
    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>>;

    /// Appends blocks and their counts, all or none of them. On return they are durable, and every
    /// later [`Self::log_after`] of any process shows them, in order and side by side.
    ///
    /// # Errors
    /// See [`Store`].
    fn append(&self, blocks: Vec<NewBlock>) -> Result<()>;

    /// Blocks after position `after`, oldest first; some, not necessarily all: empty means none.
    ///
    /// # Errors
    /// See [`Store`].
    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>>;

    /// The blocks at these positions, ascending, in order. A position that does not exist is an
    /// [`crate::error::Error::Corrupt`].
    ///
    /// # Errors
    /// See [`Store`].
    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>>;

    /// The last position of the log, 0 where it is empty.
    ///
    /// # Errors
    /// See [`Store`].
    fn head(&self) -> Result<u64>;

    /// Counters since the store was made.
    ///
    /// # Errors
    /// See [`Store`].
    fn counts(&self) -> Result<Counts>;

    /// Bytes that the store occupies on disk, its own overhead included.
    ///
    /// # Errors
    /// See [`Store`].
    fn stored_bytes(&self) -> Result<u64>;
}

/// Bytes that one call of [`Store::log_after`] returns at most, unless a single block is larger:
/// bounds memory and the time a read transaction stays open.
const READ_BYTES_MAX: usize = 4 << 20;
