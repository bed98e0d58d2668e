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

/// Copies of a plane into a backup and out of it.
mod backup;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod unreliable;

use std::collections::BTreeMap;
use std::path::Path;
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
use self::writer::{Input, Writer};
use crate::model::error::Error;
use crate::model::limits::WriteLimits;
use crate::query::latest::LatestView;
use crate::query::scan::ScanRequest;
use crate::query::{AnswerBounds, SeriesAnswer, SeriesLimits, SeriesQuery, SeriesRequest};
use crate::storage::seal::Kind;
use crate::storage::store::{Cursor, Link, NewBlock, Planes};
use crate::wire::columnar::InputRows;
use crate::wire::{CsvColumns, Format};

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

/// Backups (`docs/format.md`, "Backup").
impl Plane {
    /// Saves `plane` of `planes`, which others may have open and write, into the folder `backup` as number `number` of its backups; files that `before` names, those of the backup
    /// before, are not written again. `None` where the compactor is at work: to be tried again.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] also for another master key, [`Error::Io`],
    /// [`Error::DiskFull`]. No file that `before` names was touched.
    pub fn save(
        (planes, plane): (&dyn Planes, &str),
        master_key: &[u8; 32],
        backup: &Path,
        number: u64,
        before: &[SavedFile],
    ) -> Result<Option<Saved>, Error> {
        backup::save((planes, plane), master_key, backup, number, before)
    }

    /// Makes a plane, `plane` of `planes`, of `files` of the folder `backup`, reads it again and
    /// compares it with `content`, the hash that [`Self::save`] gave. `master_keys` are that of the backup and that of the new plane. With [`Link::Symbolic`] its
    /// segments stay where they are.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged backup or another master key, [`Error::Exists`],
    /// [`Error::Io`], [`Error::DiskFull`]: then there is no plane that could be opened.
    pub fn restore(
        (planes, plane): (&dyn Planes, &str),
        master_keys: [&[u8; 32]; 2],
        backup: &Path,
        files: &[SavedFile],
        content: &[u8; 32],
        link: Link,
    ) -> Result<(), Error> {
        backup::restore((planes, plane), master_keys, backup, files, content, link)
    }
}

/// Bytes that are kept beside the plane, under its data key: they end with it.
impl Plane {
    /// Seals `plain`.
    ///
    /// # Errors
    /// [`Error::Io`] where the machine gives no random bytes.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.sealed.sealer.seal(Kind::Beside, plain)
    }

    /// The bytes that [`Self::seal`] sealed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything else.
    pub fn unseal(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        self.sealed.sealer.open(Kind::Beside, sealed)
    }

    /// A keyed hash to look up under names that must not be written down.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> [u8; 16] {
        self.sealed.sealer.name_hash(name)
    }
}

/// Writes.
impl Plane {
    /// Writes one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and nothing is stored; [`WriteError::Failed`] with the promises of
    /// [`crate::storage::store::Store::append`].
    pub fn write(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.append(format, body, limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// The part of [`Self::write`] before the disk is waited for, which is left to the caller.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Pending, WriteError> {
        self.writer.append(Input::Body(format, body), limits, ingest_ns, acknowledge)
    }

    /// Appends a body of another protocol as one batch as of the instant `ingest_ns`, to be waited
    /// for as after [`Self::append`].
    ///
    /// # Errors
    /// As [`Self::write`]. [`Refusal::Dropped`](crate::model::fault::Refusal::Dropped) where a record
    /// is faulty and none is to be left out.
    pub fn append_adapted(
        &self,
        body: AdaptedBody<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Pending, WriteError> {
        self.writer.append(Input::Adapted(body), limits, ingest_ns, acknowledge)
    }

    /// Writes rows of comma-separated values, less their header, as one batch as of the instant
    /// `ingest_ns`. The header learns the types of columns, whether the batch is refused or not.
    ///
    /// # Errors
    /// As [`Self::write`].
    ///
    /// # Panics
    /// As [`crate::wire::parse_csv`].
    pub fn write_csv(
        &self,
        header: &mut CsvColumns,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.writer.append(Input::Csv(header, body), limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Writes rows that come as columns, as one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// As [`Self::write`].
    ///
    /// # Panics
    /// As [`crate::wire::columnar::parse_rows`].
    pub fn write_rows(
        &self,
        rows: &InputRows<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.writer.append(Input::Rows(rows), limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Makes durable what was acknowledged before it was.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Unavailable`]: everything still waits, to be tried again.
    /// [`Error::Lost`]: the store failed and what waited may not be stored.
    pub fn flush(&self) -> Result<(), Error> {
        self.writer.flush()
    }

    /// Position that the last batch of the import `key` was written with ([`Acknowledge::At`]).
    ///
    /// # Errors
    /// The store's, [`Error::Corrupt`].
    pub fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>, Error> {
        let sealed = self.sealed.store.cursor(key)?;
        sealed.map(|sealed| self.unseal(&sealed)).transpose()
    }

    /// Forgets the import `key`, which has ended.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_cursor(&self, key: &[u8; 16]) -> Result<(), Error> {
        let cursor = Some(Cursor { key: *key, position: Vec::new() });
        self.sealed.store.append(vec![NewBlock { cursor, ..NewBlock::default() }])
    }

    /// Sealed bytes that wait for [`Self::flush`].
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.writer.buffered_bytes()
    }
}

/// Reads. All follow the log first, unless they say otherwise.
impl Plane {
    /// The instant a read is made at: `clock_ns`, or after every commit that it sees where the last
    /// of them were made by a clock that was ahead by up to 5 seconds (D15).
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn read_instant(&self, clock_ns: i64) -> Result<i64, Error> {
        self.reader.read_instant(clock_ns)
    }

    /// How far the last ingest instant lies ahead of `clock_ns`, as far as the log was followed: 0
    /// where reads take it in.
    #[must_use]
    pub fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        self.follower.ingest_lead_ns(clock_ns)
    }

    /// Lends the newest sample of every entity in `[as_of_ns - freshness_ns, as_of_ns)` to `lend`.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn with_latest<R>(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        now_ns: i64,
        lend: impl FnOnce(LatestView<'_>) -> R,
    ) -> Result<R, Error> {
        self.reader.with_latest(as_of_ns, freshness_ns, measurement, now_ns, lend)
    }

    /// The body of `GET /topology`, in pieces.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn latest_json(
        &self,
        as_of_ns: i64,
        freshness_ns: i64,
        measurement: Option<&str>,
        now_ns: i64,
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.reader.latest_json(as_of_ns, freshness_ns, measurement, now_ns)
    }

    /// The answer of `GET /topology` as it is asked for: as of now without `as_of_ns`, of all
    /// measurements without one.
    ///
    /// # Errors
    /// [`Failure::Refused`] for a measurement that the contract does not name; those of
    /// [`Self::follow`].
    pub fn answer_latest(
        &self,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        clock_ns: i64,
    ) -> Result<Vec<Vec<u8>>, ReadError> {
        self.reader.answer_latest(as_of_ns, freshness_ns, measurement, clock_ns)
    }

    /// The answer of `GET /topology/series` as it is asked for.
    ///
    /// # Errors
    /// [`Failure::Refused`] with the first check that fails; those of [`Self::follow`].
    ///
    /// # Panics
    /// As [`Self::series`].
    pub fn answer_series(
        &self,
        request: SeriesRequest,
        limits: &SeriesLimits,
        clock_ns: i64,
    ) -> Result<SeriesAnswer, ReadError> {
        self.reader.answer_series(request, limits, clock_ns)
    }

    /// Reads a series as of the clock `now_ns`, which decides what retention hides, and cuts it so
    /// that it keeps `bounds` (H23, N4). All entities are read from one snapshot.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    ///
    /// # Panics
    /// When `points_max` is 0.
    pub fn series(
        &self,
        query: SeriesQuery,
        bounds: AnswerBounds,
        now_ns: i64,
    ) -> Result<SeriesAnswer, Error> {
        self.reader.series(query, bounds, now_ns)
    }

    /// All rows that `request` wants, as of the clock `now_ns`, which decides what retention hides.
    ///
    /// # Errors
    /// Those of [`Self::follow`]; [`Error::Invalid`] for more columns than a stream may have,
    /// [`Error::DiskFull`] where a long log finds no room to be sorted.
    pub fn scan(&self, request: &ScanRequest, now_ns: i64) -> Result<RowStream, Error> {
        self.reader.scan(request, now_ns)
    }

    /// A hash over everything that [`Self::scan`] answers, nothing of it hidden by retention
    /// (`docs/format.md`, "Hash of answers"). Where there are more fields than a stream may have it
    /// takes several streams, and holds good if nobody writes meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::scan`].
    pub fn answers_hash(&self) -> Result<u64, Error> {
        self.reader.answers_hash()
    }

    /// Tells if a row of one of `measurements` was ever written, by any process. Names are never
    /// removed, so rows that retention hides count as well.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn knows_any<T: AsRef<str>>(&self, measurements: &[T]) -> Result<bool, Error> {
        self.reader.knows_any(measurements)
    }

    /// Contents by measurement, of one or of all, of one entity or of all rows: out of names, the
    /// indexes of segments and the heads of the log. Names are never removed, so those of rows that
    /// are gone are there as well, and rows count until a compaction removes them.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn describe(
        &self,
        measurement: Option<&str>,
        entity: Option<&str>,
    ) -> Result<BTreeMap<String, MeasurementContents>, Error> {
        self.reader.describe(measurement, entity)
    }

    /// Counters of everything written so far, by any process.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.reader.stats()
    }

    /// Counters of `plane` of `planes` as of the last commit of any process, which needs
    /// neither its key nor a look at its rows: what is stored now counts as what was written. It
    /// takes microseconds, waits for nobody, and any process may have the plane open.
    ///
    /// # Errors
    /// Those of [`Planes::counts`].
    pub fn peek(planes: &dyn Planes, plane: &str) -> Result<Stats, Error> {
        Stats::peek(planes, plane)
    }
}

/// Upkeep.
impl Plane {
    /// Compacts the log if it is `due` at `now_ns`, merges segments, and removes those that
    /// retention hides. `None` where another process is at it.
    ///
    /// # Errors
    /// Those of [`Self::follow`], [`Error::DiskFull`]; what is stored is as it was before.
    pub fn compact(&self, due: Due, now_ns: i64) -> Result<Option<Compacted>, Error> {
        self.compactor.compact(due, now_ns)
    }

    /// Work that [`Self::compact`] has left from `now_ns` on, where blocks may become `age_ns` old,
    /// so that nobody has to open the plane to ask.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn upcoming(&self, age_ns: i64, now_ns: i64) -> Result<Upcoming, Error> {
        self.compactor.upcoming(age_ns, now_ns)
    }

    /// Hides the rows of `extent` that are committed by now from every read of every process, or
    /// only counts them. A later [`Self::compact`] removes them from disk; rows written later into
    /// the same extent are not hidden. `None` where another process compacts.
    ///
    /// # Errors
    /// Those of [`Self::follow`], [`Error::DiskFull`], and [`Error::Invalid`] where too many deletes
    /// wait for compaction; then nothing is hidden.
    pub fn delete(&self, extent: &Extent, is_dry_run: bool) -> Result<Option<Deleted>, Error> {
        self.writer.flush()?;
        self.compactor.delete(extent, is_dry_run)
    }

    /// Sets how long rows are kept, 0 for ever: older ones vanish from every read at once, of any
    /// process, and from disk with a later [`Self::compact`].
    ///
    /// # Errors
    /// The store's.
    pub fn set_retention(&self, seconds: u64) -> Result<(), Error> {
        self.compactor.set_retention(seconds)
    }
}
