//! One tenant's data plane: parser, catalog, sealed store and queries put together.
//!
//! Any number of processes may have the same plane open. Each learns what the others committed by
//! following the log at the start of a read, so every read sees every write acknowledged before.

mod caches;
mod compactor;
mod follower;
mod reader;
mod registry;
mod segments;
mod verify;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use compactor::{Compacted, Due, Upcoming};
pub use verify::Verified;
pub use writer::{Acknowledge, WriteError, Written};

use self::caches::Caches;
use self::writer::buffer::Buffer;
use crate::model::batch::Table;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::seal::{self, DataKey, Kind, Sealer, random_plane_id};
use crate::storage::store::{Counts, LmdbStore, MemoryStore, Peeked, Store};

/// Name of the file that holds the wrapped data key.
const KEY_FILE: &str = "key";

const SECOND_NS: i64 = 1_000_000_000;

/// Every instant: nothing is filtered out of the newest samples.
const ALWAYS_NS: Range<i64> = i64::MIN..i64::MAX;

/// How often a read starts anew that compaction overtook.
const VIEWS_MAX: usize = 100;

const MISSING: Error = Error::Corrupt { what: "a segment that is missing" };

/// A tenant's store, open in this process. Safe to share between threads.
pub struct Plane {
    tenant_key: String,
    store: Box<dyn Store>,
    sealer: Sealer,
    /// Held while pages of names are followed, or one is appended and noted.
    naming: Mutex<()>,
    names: RwLock<Names>,
    state: RwLock<State>,
    caches: Arc<Caches>,
    /// Held while the log is followed, so that blocks are applied once and in order.
    cursor: Mutex<Cursor>,
    buffer: Buffer,
}

/// What the write path looks up.
#[derive(Default)]
struct Names {
    /// Pages of names that are in the catalog.
    pages: u64,
    catalog: Catalog,
}

/// What reads look up, as of [`Cursor::log`].
#[derive(Default)]
struct State {
    latest: Latest,
    manifest: Arc<Manifest>,
    /// Seconds that rows are kept, 0 for ever.
    retention_seconds: u64,
    /// The blocks behind [`Manifest::compacted`].
    log: Vec<LogBlock>,
    /// Greatest ingest instant applied, before which no read is made.
    last_ingest_ns: Option<i64>,
}

/// What is remembered of a block of the log.
struct LogBlock {
    sequence: u64,
    ingest_ns: i64,
    min_time_ns: i64,
    max_time_ns: i64,
}

#[derive(Default)]
struct Cursor {
    log: u64,
    /// Of the manifest.
    generation: u64,
}

/// The stored rows that a read must look at, in write order: segments, stored blocks, recent ones.
struct Snapshot {
    manifest: Arc<Manifest>,
    /// Positions of blocks that are no longer in memory.
    stored: Vec<u64>,
    recent: Vec<Arc<[Table]>>,
}

/// Counters of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// What was written since the plane was made.
    pub counts: Counts,
    /// Distinct (measurement, tag set).
    pub series: u64,
    /// Rows that are stored now: retention removes some.
    pub stored_rows: u64,
    /// Values that are stored now.
    pub stored_values: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes on disk, the store's own included.
    pub stored_bytes: u64,
}

impl Plane {
    /// Makes an empty plane in `directory`, which must not exist or be empty, with a data key of
    /// its own wrapped by `master_key`.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Io`], [`Error::DiskFull`].
    pub fn create(directory: &Path, master_key: &[u8; 32]) -> Result<()> {
        make_private_directory(directory)?;
        let data_key = DataKey::random()?;
        let wrapped = seal::wrap(master_key, &random_plane_id()?, &data_key)?;
        LmdbStore::create(directory)?;
        // The key comes last: a plane without one was never acknowledged and cannot be opened.
        write_key_file(directory, &wrapped)
    }

    /// Opens the plane in `directory` for the tenant whose slug is `tenant_key`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] also for another master key, [`Error::Database`]
    /// where this process has it open already, or where calls still end seconds after
    /// [`Self::close`]; [`Error::Io`].
    pub fn open(directory: &Path, master_key: &[u8; 32], tenant_key: &str) -> Result<Self> {
        let (store, sealer) = open_store(directory, master_key)?;
        let plane = Self::new(Box::new(store), sealer, tenant_key);
        plane.follow()?;
        Ok(plane)
    }

    /// A plane that lives and dies with the process, sealed like any other.
    ///
    /// # Errors
    /// [`Error::Io`] where the machine gives no random bytes.
    pub fn in_memory(tenant_key: &str) -> Result<Self> {
        let sealer = Sealer::new(&DataKey::random()?, random_plane_id()?);
        Ok(Self::new(Box::<MemoryStore>::default(), sealer, tenant_key))
    }

    fn new(store: Box<dyn Store>, sealer: Sealer, tenant_key: &str) -> Self {
        Self {
            tenant_key: tenant_key.to_owned(),
            store,
            sealer,
            naming: Mutex::default(),
            names: RwLock::default(),
            state: RwLock::default(),
            caches: Caches::new(),
            cursor: Mutex::default(),
            buffer: Buffer::default(),
        }
    }

    /// Counters of the plane in `directory` as of the last commit of any process, which needs neither
    /// its key nor a look at its rows: what is stored now counts as what was written. It takes
    /// microseconds, waits for nobody, and any process may have the plane open.
    ///
    /// # Errors
    /// Those of [`LmdbStore::peek`].
    pub fn peek(directory: &Path) -> Result<Stats> {
        let Peeked { counts, series, segments, stored_bytes } = LmdbStore::peek(directory)?;
        let (stored_rows, stored_values) = (counts.rows, counts.values);
        Ok(Stats { counts, series, stored_rows, stored_values, segments, stored_bytes })
    }

    /// Makes durable what was acknowledged before it was.
    ///
    /// # Errors
    /// [`Error::DiskFull`]: everything still waits, to be tried again. [`Error::Lost`]: the store
    /// failed and what waited may not be stored.
    pub fn flush(&self) -> Result<()> {
        self.buffer.flush(|blocks| self.store.append(blocks))
    }

    /// Sealed bytes that wait for [`Self::flush`].
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Ends the use of this plane: stores what waits, as far as that goes, and lets every call that
    /// is under way or comes later end with [`Error::Closed`], the long ones at their next block.
    /// Its key, files and memory go when the last of them has ended and the plane is dropped.
    pub fn close(&self) {
        // A write that is under way must not be acknowledged after the last flush.
        self.buffer.close();
        let _ = self.flush();
        self.store.close();
    }

    /// Seals bytes that are kept beside the plane, under its data key: they end with it.
    ///
    /// # Errors
    /// [`Error::Io`] where the machine gives no random bytes.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>> {
        self.sealer.seal(Kind::Beside, plain)
    }

    /// What [`Self::seal`] sealed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything else.
    pub fn unseal(&self, sealed: &[u8]) -> Result<Vec<u8>> {
        self.sealer.open(Kind::Beside, sealed)
    }

    /// A keyed hash to look up under what must not be written down.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> [u8; 16] {
        self.sealer.name_hash(name)
    }

    /// Reads the head of the store, to learn whether it answers.
    ///
    /// # Errors
    /// The store's.
    pub fn ping(&self) -> Result<()> {
        self.store.head().map(drop)
    }

    /// Counters of everything written so far, by any process.
    ///
    /// # Errors
    /// The store's.
    pub fn stats(&self) -> Result<Stats> {
        self.follow()?;
        let counts = self.store.counts()?;
        let manifest = Arc::clone(&self.state().manifest);
        let in_segments = |of: fn(&SegmentEntry) -> u64| manifest.segments.iter().map(of).sum();
        let held = |ever: u64, left: u64, now: u64| ever.saturating_sub(left) + now;
        Ok(Stats {
            counts,
            series: self.names().catalog.series_count() as u64,
            stored_rows: held(counts.rows, manifest.rows, in_segments(|entry| entry.rows)),
            stored_values: held(counts.values, manifest.values, in_segments(|entry| entry.values)),
            segments: manifest.segments.len() as u64,
            stored_bytes: self.store.stored_bytes()?,
        })
    }

    /// Sets how long rows are kept, 0 for ever: older ones vanish from every read at once, of any
    /// process, and from disk with a later [`Self::compact`].
    ///
    /// # Errors
    /// The store's.
    pub fn set_retention(&self, seconds: u64) -> Result<()> {
        self.follow()?;
        if self.state().retention_seconds == seconds {
            Ok(())
        } else {
            self.store.set_retention(seconds)
        }
    }

    /// The instant at `now_ns` before which rows are no longer kept.
    fn kept_from_ns(&self, now_ns: i64) -> i64 {
        match self.state().retention_seconds {
            0 => i64::MIN,
            seconds => {
                let kept_ns = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND_NS);
                now_ns.saturating_sub(kept_ns)
            }
        }
    }

    // The locks are taken in the order cursor, naming, names, state. A poisoned one is taken over: each
    // change below them is complete before anything can panic, or is redone from the log.
    fn names(&self) -> RwLockReadGuard<'_, Names> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, Names> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cursor(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Plane {
    /// The last chance of what waits; whoever wants to know of a failure calls [`Plane::flush`].
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

fn open_store(directory: &Path, master_key: &[u8; 32]) -> Result<(LmdbStore, Sealer)> {
    let path = directory.join(KEY_FILE);
    let wrapped = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(path.clone()),
        _ => Error::io("read", &path, error),
    })?;
    let (plane_id, data_key) = seal::unwrap(master_key, &wrapped)?;
    let store = LmdbStore::open(directory)?;
    Ok((store, Sealer::new(&data_key, plane_id)))
}

fn make_private_directory(directory: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            return made.map_err(|error| Error::io("make", directory, error));
        }
        Err(error) => return Err(Error::io("list", directory, error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Error::Exists(directory.to_owned())),
    }
}

/// Writes the key so that it is there whole or not at all, even after a power cut.
fn write_key_file(directory: &Path, wrapped: &[u8]) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = directory.join(KEY_FILE);
    let staged = directory.join("key.new");
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(wrapped)?;
        file.sync_all()?;
        std::fs::rename(&staged, &path)?;
        // The directory's own entry must survive a power cut as well, and so must those above it:
        // an attempt that failed may have made them. Those of others may be closed to us.
        std::fs::File::open(directory)?.sync_all()?;
        let absolute = std::path::absolute(directory)?;
        let above = absolute.ancestors().skip(1);
        above.flat_map(std::fs::File::open).try_for_each(|directory| directory.sync_all())
    };
    write().map_err(|error| Error::io("write", &path, error))
}

#[cfg(test)]
mod tests;
