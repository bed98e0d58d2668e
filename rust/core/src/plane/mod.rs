//! One tenant's data plane: parser, catalog, sealed store and queries put together.
//!
//! Any number of processes may have the same plane open. Each learns what the others committed by
//! following the log at the start of a read, so every read sees every write acknowledged before.
//!
//! Each part below keeps its locks to itself and holds the parts that it may call, all of them
//! listed before it. A call that holds a lock waits only for those, so no two calls wait for each
//! other.

mod failure;

/// Decoded blocks, open segments and raw keys, all of which can be done without.
mod caches;

/// The store and its key; it holds the caches.
mod sealed;

/// Ids of names.
mod registry;

/// Position in the log, newest samples, manifest.
mod follower;

/// Newest samples of the past.
mod history;

/// Reads of a snapshot.
mod reader;

/// Log into segments, checkpoint, retention.
mod compactor;

/// Batches into blocks, and those that wait.
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

pub use self::backup::{Saved, SavedFile};
pub use self::compactor::plan::Upcoming;
pub use self::compactor::rest::Due;
pub use self::compactor::{Compacted, Deleted};
pub use self::failure::{Failure, ReadError, WriteError};
pub use self::reader::describe::{Bounded, MeasurementContents};
pub use self::reader::scan::RowStream;
pub use self::reader::stats::Stats;
pub use self::verify::Verified;
pub use self::writer::{Acknowledge, AdaptedBody, Pending, Written};
pub use crate::storage::tombstone::Extent;

use self::compactor::Compactor;
use self::follower::Follower;
use self::reader::Reader;
use self::registry::Registry;
use self::sealed::SealedStore;
use self::writer::Writer;
use crate::model::error::Error;
use crate::storage::store::Planes;

/// A tenant's store, open in this process. Safe to share between threads.
pub struct Plane {
    sealed: Arc<SealedStore>,
    follower: Arc<Follower>,
    reader: Reader,
    compactor: Compactor,
    writer: Writer,
}

/// Life of a plane.
impl Plane {
    /// Makes an empty plane, `plane` of `planes`, with a data key of its own wrapped by
    /// `master_key`.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Io`], [`Error::DiskFull`].
    pub fn create(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<(), Error> {
        sealed::create(planes, plane, master_key)
    }

    /// Opens `plane` of `planes` for the tenant whose slug is `tenant_key`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] also for another master key, [`Error::Database`]
    /// where this process has it open already, or where calls still end seconds after
    /// [`Self::close`]; [`Error::Io`].
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

    /// A plane that lives and dies with the process, sealed like any other.
    ///
    /// # Errors
    /// [`Error::Io`] where the machine gives no random bytes.
    pub fn in_memory(tenant_key: &str) -> Result<Self, Error> {
        SealedStore::in_memory(tenant_key).map(Self::new)
    }

    fn new(sealed: SealedStore) -> Self {
        let sealed = Arc::new(sealed);
        let registry = Arc::new(Registry::new(sealed.clone()));
        let follower = Arc::new(Follower::new(sealed.clone(), registry.clone()));
        Self {
            reader: Reader::new(sealed.clone(), registry.clone(), follower.clone()),
            compactor: Compactor::new(sealed.clone(), registry.clone(), follower.clone()),
            writer: Writer::new(sealed.clone(), registry),
            follower,
            sealed,
        }
    }

    /// A plane in memory that has the names of this one and keeps no row: what it takes, this one
    /// would take, and what it refuses or rejects, this one would.
    ///
    /// # Errors
    /// The store's.
    pub fn trial(&self) -> Result<Self, Error> {
        self.sealed.trial().map(Self::new)
    }

    /// Ends the use of this plane: stores what waits, as far as that goes, and lets every call that
    /// is under way or comes later end with [`Error::Closed`], the long ones at their next block.
    /// Its key, files and memory go when the last of them has ended and the plane is dropped.
    pub fn close(&self) {
        self.writer.close();
        self.sealed.store.close();
    }

    /// Reads the head of the store, to learn if it answers.
    ///
    /// # Errors
    /// The store's.
    pub fn ping(&self) -> Result<(), Error> {
        self.sealed.store.head().map(drop)
    }

    /// Applies everything committed by any process so far.
    ///
    /// # Errors
    /// The store's, and [`Error::Corrupt`] for bytes that do not open; what was applied before
    /// stays, and the next call goes on from there.
    pub fn follow(&self) -> Result<(), Error> {
        self.follower.follow()
    }

    /// Looks at every byte of a plane, which others may have open and write. It changes nothing.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is none, [`Error::Io`] where it cannot be read; all that is
    /// wrong with it is in the answer.
    pub fn verify(
        planes: &dyn Planes,
        plane: &str,
        master_key: &[u8; 32],
    ) -> Result<Verified, Error> {
        verify::verify(planes, plane, master_key)
    }
}
