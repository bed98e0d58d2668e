//! The promises of a store of records.

use std::collections::BTreeMap;

use crate::model::error::Result;

/// Key and value.
pub type Item = (Vec<u8>, Vec<u8>);

/// Values by space and key. A key has 1 to 511 bytes. `None` deletes the record.
pub type Changes = BTreeMap<String, BTreeMap<Vec<u8>, Option<Vec<u8>>>>;

/// A state of a store. While the mark stays equal, all records are the same, and as sound as
/// before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateMark {
    /// Number of the last change.
    pub version: u64,
    /// Number of the opening of the store's files. No other opening in this process has the same
    /// number.
    pub opening: u64,
    /// Instant of the last change of the files, nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A store of records, shared by threads and processes.
pub trait RecordStore: Send + Sync {
    /// Describes the place of the records for an operator, without secrets.
    fn place(&self) -> String;

    /// Begins a snapshot of the records as they are now. If it `writes`, no other writing snapshot
    /// begins, in any process, until this snapshot is committed or dropped.
    ///
    /// # Errors
    /// Returns an error if the store cannot be used now. The next call tries again.
    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>>;

    /// Returns the state of the next snapshot, or an earlier state.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    fn mark(&self) -> Result<StateMark> {
        Ok(StateMark { version: self.begin(false)?.version(), ..StateMark::default() })
    }

    /// Looks for changes that no snapshot has seen. Returns true if there may be some. A store
    /// whose snapshots always show the newest change returns false.
    ///
    /// # Errors
    /// Returns the errors of [`Self::begin`].
    fn renew(&self) -> Result<bool> {
        Ok(false)
    }

    /// Releases open files. The next call opens them again.
    fn close(&self) {}
}

/// The records as they were when the snapshot began. Dropping the snapshot without [`Self::commit`]
/// changes no record.
pub trait RecordSnapshot: Send {
    /// Returns the number of the last change that the snapshot sees. Each change has a higher
    /// number.
    fn version(&self) -> u64;

    /// Returns the values of keys, in the order of the keys.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Returns records whose keys begin with `prefix`, ascending from the key `first` on: at most
    /// `limit`.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>>;

    /// Returns the number of records of a space.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    fn count(&mut self, space: &str) -> Result<u64>;

    /// Makes the changes, all or none. They are durable when this returns.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`]. After [`crate::model::error::Error::Unknown`]
    /// the changes may have been made. Returns [`crate::model::error::Error::Invalid`] if the
    /// snapshot does not write.
    fn commit(self: Box<Self>, changes: &Changes) -> Result<()>;
}
