//! Promises of a store of records.

use std::collections::BTreeMap;

use crate::model::error::Result;

/// Key and value.
pub type Item = (Vec<u8>, Vec<u8>);

/// Values by space and key, of 1 to 511 bytes; `None` for records that are deleted.
pub type Changes = BTreeMap<String, BTreeMap<Vec<u8>, Option<Vec<u8>>>>;

/// A state of a store: under an equal mark all records are the same, and as sound as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Number of the last change.
    pub version: u64,
    /// Number of the opening of its files, which no other opening in this process has.
    pub opening: u64,
    /// Instant of the last change of its files, nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A store of records, shared by threads and processes.
pub trait RecordStore: Send + Sync {
    /// The place of the records, in words of an operator, without secrets.
    fn place(&self) -> String;

    /// The records as they are now. If it `writes`, no other snapshot that writes begins, in any
    /// process, until it is committed or dropped.
    ///
    /// # Errors
    /// Those of a store that cannot be used now; the next call tries again.
    fn begin(&self, writes: bool) -> Result<Box<dyn Snapshot>>;

    /// The state that the next snapshot has, or an earlier one.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn mark(&self) -> Result<Mark> {
        Ok(Mark { version: self.begin(false)?.version(), ..Mark::default() })
    }

    /// Looks for changes that no snapshot has seen. Returns true if there may be some, which a
    /// store never says whose snapshots are always of the newest change.
    ///
    /// # Errors
    /// As [`Self::begin`].
    fn renew(&self) -> Result<bool> {
        Ok(false)
    }

    /// Releases what is open; the next call opens it again.
    fn close(&self) {}
}

/// The records as they were when it began. Dropped without [`Self::commit`], it changes nothing.
pub trait Snapshot: Send {
    /// Number of the last change that is seen here; each change has a higher number.
    fn version(&self) -> u64;

    /// The values of keys, in their order.
    ///
    /// # Errors
    /// As [`RecordStore::begin`].
    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Records whose keys begin with `prefix`, ascending from the key `first` on, `limit` at most.
    ///
    /// # Errors
    /// As [`RecordStore::begin`].
    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>>;

    /// Number of records of a space.
    ///
    /// # Errors
    /// As [`RecordStore::begin`].
    fn count(&mut self, space: &str) -> Result<u64>;

    /// Makes the changes, all or none, durable on return.
    ///
    /// # Errors
    /// As [`RecordStore::begin`]; after [`crate::model::error::Error::Unknown`] they may have been
    /// made. [`crate::model::error::Error::Invalid`] if the snapshot does not write.
    fn commit(self: Box<Self>, changes: &Changes) -> Result<()>;
}
