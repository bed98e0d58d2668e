//! One tenant's data plane: combines parser, catalog, sealed store and queries.
//!
//! Any number of processes may have the same plane open. Each process learns the commits of other
//! processes when it follows the log at the start of a read. So every read sees every write that
//! was acknowledged before it.
//!
//! Each part below keeps its locks private. It may call only parts that are listed before it. A
//! call that holds a lock waits only for such parts, so no two calls wait for each other.

mod failure;

/// Decoded blocks, open segments and raw keys. The plane works without them too.
mod caches;

/// The store and its key, together with the caches.
mod sealed;

/// Ids of names.
mod registry;

/// Position in the log, newest samples, manifest.
mod follower;

/// Newest samples of the past.
mod history;

/// Reads of a snapshot.
mod reader;

/// Moves the log into segments; writes the checkpoint; applies retention.
mod compactor;

/// Turns batches into blocks, and keeps batches that wait.
mod writer;

mod verify;

mod binding;

/// Copies of a plane into a backup and out of it.
mod backup;

mod interface;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod unreliable;

use std::sync::Arc;

pub use self::backup::{SaveReport, SavedFile};
pub use self::compactor::plan::UpkeepSchedule;
pub use self::compactor::rest::CompactionTrigger;
pub use self::compactor::{CompactionReport, DeleteReport};
pub use self::failure::{Failure, ReadError, WriteError};
pub use self::reader::describe::{DistinctTexts, MeasurementContents};
pub use self::reader::labelled::LabelReadError;
pub use self::reader::processors::{reading_on_one, take_helpers_time};
pub use self::reader::scan::RowStream;
pub use self::reader::stats::{KeptHoursStats, Stats};
pub use self::sealed::KeyFile;
pub use self::verify::VerificationReport;
pub use self::writer::{Acknowledgement, AdaptedBody, PendingBatch, WriteReport};
pub use crate::storage::tombstone::Extent;

use self::compactor::Compactor;
use self::follower::Follower;
use self::reader::Reader;
use self::registry::NamesRegistry;
use self::sealed::SealedStore;
use self::writer::Writer;
use crate::model::error::Error;
use crate::storage::store::Planes;

/// A tenant's store, open in this process. Threads may share it.
///
/// # Examples
///
/// ```
/// use fleetcast_core::model::limits::WriteLimits;
/// use fleetcast_core::plane::{Acknowledgement, Plane};
/// use fleetcast_core::query::scan::ScanRequest;
/// use fleetcast_core::wire::Format;
///
/// let plane = Plane::in_memory("acme").unwrap();
/// let body = br#"[{"measurement": "link", "time": "2026-01-01T00:00:00Z",
///     "tags": {"entity_id": "e1"}, "fields": {"snr_db": 1.5}}]"#;
/// let now_ns = 1_790_000_000_000_000_000;
/// let limits = WriteLimits::default();
/// plane.write(Format::Json, body, &limits, now_ns, Acknowledgement::Durable).unwrap();
///
/// let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
/// let mut rows = plane.scan(&everything, now_ns).unwrap();
/// assert!(rows.next_batch().unwrap().is_some());
/// assert!(rows.next_batch().unwrap().is_none());
/// ```
pub struct Plane {
    sealed: Arc<SealedStore>,
    follower: Arc<Follower>,
    reader: Reader,
    compactor: Compactor,
    writer: Writer,
}

/// Life of a plane.
impl Plane {
    /// Makes an empty plane, `plane` of `planes`, with a new data key. `master_key` wraps the data
    /// key. Example: `Plane::create(&Directory::new(folder), "acme", &master_key)`.
    ///
    /// # Errors
    /// Returns [`Error::Exists`], [`Error::Io`] or [`Error::DiskFull`].
    pub fn create(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<(), Error> {
        sealed::create(planes, plane, master_key)
    }

    /// Opens `plane` of `planes` for the tenant with the slug `tenant_key`. Example:
    /// `Plane::open(&Directory::new(folder), "acme", &master_key, "acme")`.
    ///
    /// # Errors
    /// Returns [`Error::Missing`], [`Error::Corrupt`] (also for another master key) or
    /// [`Error::Io`]. Returns [`Error::Database`] if this process has the plane open already, or if
    /// calls still end seconds after [`Self::close`].
    pub fn open(
        planes: &dyn Planes,
        plane: &str,
        master_key: &[u8; 32],
        tenant_key: &str,
    ) -> Result<Self, Error> {
        let plane = Self::new(SealedStore::open(planes, plane, master_key, tenant_key)?);
        plane.follower.begin()?;
        Ok(plane)
    }

    /// Makes a plane in memory that ends with the process. Its bytes are sealed as in any other
    /// plane. Example: see [`Plane`].
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the machine gives no random bytes.
    pub fn in_memory(tenant_key: &str) -> Result<Self, Error> {
        SealedStore::in_memory(tenant_key).map(Self::new)
    }

    /// Returns the slug of the tenant. Example: `acme`.
    #[must_use]
    pub fn tenant_key(&self) -> &str {
        &self.sealed.tenant_key
    }

    fn new(sealed: SealedStore) -> Self {
        let sealed = Arc::new(sealed);
        let registry = Arc::new(NamesRegistry::new(sealed.clone()));
        let follower = Arc::new(Follower::new(sealed.clone(), registry.clone()));
        Self {
            reader: Reader::new(sealed.clone(), registry.clone(), follower.clone()),
            compactor: Compactor::new(sealed.clone(), registry.clone(), follower.clone()),
            writer: Writer::new(sealed.clone(), registry),
            follower,
            sealed,
        }
    }

    /// Makes a plane in memory that has the names of this plane and keeps no row. It accepts,
    /// refuses and rejects exactly the records that this plane would. Example: write a file to
    /// `plane.trial()?` first, and import it only if no record is rejected.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn trial(&self) -> Result<Self, Error> {
        self.sealed.trial().map(Self::new)
    }

    /// Ends the use of this plane. Stores the batches that wait, as far as possible. Every call in
    /// progress or later ends with [`Error::Closed`]; a long call ends at its next block. The
    /// plane's key, files and memory are freed after the last call has ended and the plane is
    /// dropped. Example: a scan of a million rows ends within a block instead of delaying the
    /// shutdown.
    pub fn close(&self) {
        self.writer.close();
        self.sealed.store.close();
    }

    /// Reads the head of the store to learn if it answers. Example: a health check calls it, and
    /// reports its error.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn ping(&self) -> Result<(), Error> {
        self.sealed.store.head().map(drop)
    }

    /// Applies everything that any process has committed so far. Example: a server follows every
    /// second, so that the next read has less to do.
    ///
    /// # Errors
    /// Returns the errors of the store, or [`Error::Corrupt`] for bytes that do not open. Blocks
    /// applied before the error stay, and the next call continues from there.
    pub fn follow(&self) -> Result<(), Error> {
        self.follower.follow()
    }

    /// Reads every byte of a plane and checks it. Other processes may have the plane open and
    /// write. It changes no byte. Example: `damages` of the result is empty for a sound plane.
    ///
    /// # Errors
    /// Returns [`Error::Missing`] if there is no such plane, or [`Error::Io`] if it cannot be read.
    /// The result lists all damages.
    pub fn verify(
        planes: &dyn Planes,
        plane: &str,
        master_key: &[u8; 32],
    ) -> Result<VerificationReport, Error> {
        verify::verify(planes, plane, master_key)
    }
}
