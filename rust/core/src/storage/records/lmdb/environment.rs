//! One open LMDB environment and its files, which other programs may replace or remove.
//!
//! LMDB maps its file. Access to a mapped page behind the end of the file ends the process. So the
//! file is made as long as LMDB expects before its pages are used.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use heed::types::Bytes;
use heed::{
    CommitOrAbort, CommitToken, Env, EnvOpenOptions, MdbError, OnCommit, RoTxn, RwTxn, WithoutTls,
};

use crate::model::error::{Error, Result, is_disk_full};
use crate::storage::store::lmdb::{OpenGuard, reserved_lock_file};

type RecordTable = heed::Database<'static, Bytes, Bytes>;
/// Tables by space.
type RecordTables = BTreeMap<String, RecordTable>;

/// Name of the file that holds the content of an environment.
pub(super) const DATA_FILE: &str = "data.mdb";
const LOCK_FILE: &str = "lock.mdb";
/// The environment's first table, which also has the names of the other tables.
pub(super) const OWN: &str = "";
/// Key in the first table whose value names the format.
pub(super) const FORMAT: &[u8] = b"format";

/// Bytes of the map of a new environment: address space, not memory or disk.
const MAP_BYTES_MIN: usize = 64 << 20;
/// Bytes of a map for each byte of the file, so that a write finds room. Example: a file of 100 MiB
/// gets a map of 448 MiB, 400 MiB rounded up to a multiple of 64 MiB.
const MAP_BYTES_PER_BYTE: usize = 4;
/// Most reader slots: threads of all processes that read at the same time.
const READERS_MAX: u32 = 1_024;
const PAGE_BYTES_MIN: u64 = 4_096;
/// Number of commits between two searches for readers whose process ended. Bounds the pages that
/// such readers keep.
const COMMITS_PER_CHECK: u64 = 256;

/// Number of environments that this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

pub(super) struct RecordEnvironment {
    /// Number of the environment, unique in this process.
    pub(super) number: u64,
    env: Env<WithoutTls>,
    tables: RecordTables,
    path: PathBuf,
    /// Device and inode of the file.
    file: (u64, u64),
    /// Length of the file when it was last looked at.
    bytes: AtomicU64,
    page_bytes: u64,
    process_id: u32,
    commits: AtomicU64,
    /// True if the environment must be opened again.
    is_outgrown: AtomicBool,
    /// Least bytes of the map at the next opening.
    map_bytes_wanted: AtomicUsize,
    // The field stands behind `env`: when a process closes a descriptor of this file, the system
    // drops LMDB's locks.
    _lock_file: File,
    /// The guard is the last field, and so the last to be dropped.
    guard: OpenGuard,
}

impl RecordEnvironment {
    /// Opens the environment in `folder`.
    pub(super) fn open(
        folder: &Path,
        spaces: &[String],
        format: &[u8],
        map_bytes_min: usize,
    ) -> Result<Self> {
        let path = folder.join(DATA_FILE);
        let meta = std::fs::metadata(&path).map_err(|error| Error::io("open", &path, error))?;
        if meta.len() < 2 * PAGE_BYTES_MIN || !meta.len().is_multiple_of(PAGE_BYTES_MIN) {
            return Err(cut_short());
        }
        let mut opened = Self::map(folder, spaces.len(), &meta, map_bytes_min)?;
        opened.back_with_file(meta.len())?;
        opened.env.clear_stale_readers().map_err(problem)?;
        opened.tables = match opened.found_tables(spaces)? {
            Some(tables) => tables,
            None => opened.made_tables(spaces)?,
        };
        let transaction = opened.snapshot().map_err(problem)?;
        let stored = opened.table(OWN)?.get(&transaction, FORMAT).map_err(problem)?;
        if stored != Some(format) {
            return Err(Error::Corrupt { what: "the format of data.mdb" });
        }
        drop(transaction);
        Ok(opened)
    }

    /// Makes an environment without records in `folder`, which is empty.
    pub(super) fn create(folder: &Path, spaces: &[String]) -> Result<Self> {
        let path = folder.join(DATA_FILE);
        let mut options = File::options();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        let made = made.and_then(|file| file.metadata());
        let meta = made.map_err(|error| Error::io("make", &path, error))?;
        let mut opened = Self::map(folder, spaces.len(), &meta, 0)?;
        opened.tables = opened.made_tables(spaces)?;
        Ok(opened)
    }

    fn map(folder: &Path, tables: usize, meta: &Metadata, map_bytes_min: usize) -> Result<Self> {
        let path = folder.join(DATA_FILE);
        let guard = OpenGuard::on(&path)?;
        let bytes = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        let map_bytes = bytes.saturating_mul(MAP_BYTES_PER_BYTE).max(map_bytes_min);
        let map_bytes = map_bytes.div_ceil(MAP_BYTES_MIN).max(1).saturating_mul(MAP_BYTES_MIN);
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        let tables = u32::try_from(tables).expect("a store has few spaces");
        options.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(tables);
        // SAFETY: only this code changes the file. The file lies in a folder of mode 0700, every
        // process opens it with locking on, and no process of ours truncates it. The guard keeps
        // this process from opening it twice.
        #[expect(unsafe_code, reason = "a memory-mapped file cannot be opened safely")]
        let env = unsafe { options.open(folder) };
        let env = env.map_err(problem)?;
        let lock_file = reserved_lock_file(&folder.join(LOCK_FILE))?;
        let page_bytes = u64::from(env.unnamed_database_stat().page_size);
        Ok(Self {
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            env,
            tables: BTreeMap::new(),
            path,
            file: (meta.dev(), meta.ino()),
            bytes: AtomicU64::new(meta.len()),
            page_bytes,
            process_id: std::process::id(),
            commits: AtomicU64::new(0),
            is_outgrown: AtomicBool::new(false),
            map_bytes_wanted: AtomicUsize::new(0),
            _lock_file: lock_file,
            guard,
        })
    }

    /// Makes the file as long as its head says. LMDB sometimes leaves pages at the end unwritten,
    /// which is sound. In a file that was cut short, LMDB finds zeros instead of a page and returns
    /// an error.
    fn back_with_file(&self, bytes: u64) -> Result<()> {
        let needed = self.bytes_needed();
        if needed > bytes.saturating_mul(2).saturating_add(MAP_BYTES_MIN as u64) {
            return Err(cut_short());
        }
        if bytes < needed {
            let file = File::options().write(true).open(&self.path);
            let lengthened = file.and_then(|file| file.set_len(needed));
            lengthened.map_err(|error| Error::io("lengthen", &self.path, error))?;
        }
        Ok(())
    }

    fn bytes_needed(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * self.page_bytes
    }

    /// Opens the tables. Returns `None` if a table is missing. Does not wait for a writer.
    fn found_tables(&self, spaces: &[String]) -> Result<Option<RecordTables>> {
        let transaction = self.env.read_txn().map_err(problem)?;
        let opened = self.env.open_databases_and_commit(transaction, |open, transaction| {
            let mut tables = Vec::new();
            for space in spaces {
                tables.push(open.open_database::<Bytes, Bytes>(transaction, Some(space))?);
            }
            let own = open.open_database::<Bytes, Bytes>(transaction, None)?;
            Ok(CommitOrAbort::<_, ()>::Commit((NewTables(tables), own)))
        });
        let CommitOrAbort::Commit((tables, Some(own))) = opened.map_err(problem)? else {
            return Ok(None);
        };
        let tables: Option<Vec<RecordTable>> = tables.into_iter().collect();
        Ok(tables.map(|tables| by_space(spaces, tables, own)))
    }

    /// Opens the tables, and makes the missing tables.
    fn made_tables(&self, spaces: &[String]) -> Result<RecordTables> {
        let transaction = self.env.write_txn().map_err(problem)?;
        let made = self.env.create_databases_and_commit(transaction, |open, transaction| {
            let mut tables = Vec::new();
            for space in spaces {
                tables.push(open.create_database::<Bytes, Bytes>(transaction, Some(space))?);
            }
            let own = open.create_database::<Bytes, Bytes>(transaction, None)?;
            Ok(CommitOrAbort::<_, ()>::Commit((NewTables(tables), own)))
        });
        match made.map_err(problem)? {
            CommitOrAbort::Commit((tables, own)) => Ok(by_space(spaces, tables, own)),
            CommitOrAbort::Abort(()) => Err(damaged()),
        }
    }

    /// Returns the instant of the last change of the file, nanoseconds since 1970. Returns `None`
    /// if the mapped file was replaced or the map is too small.
    pub(super) fn changed_ns_if_of_use(&self, writes: bool) -> Option<i64> {
        let meta = std::fs::metadata(&self.path).ok()?;
        let is_outgrown = self.is_outgrown.load(Ordering::Acquire);
        let is_same = (meta.dev(), meta.ino()) == self.file
            && meta.len() >= self.bytes.fetch_max(meta.len(), Ordering::AcqRel);
        let is_own = self.process_id == std::process::id();
        let is_of_use = is_own && is_same && !is_outgrown && !(writes && self.fills());
        is_of_use.then(|| meta.ctime() * 1_000_000_000 + meta.ctime_nsec())
    }

    /// Returns true if `file` is the mapped file.
    pub(super) fn is_of(&self, file: &File) -> bool {
        file.metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == self.file)
    }

    /// Returns true if more than half of the map is used. A write must find room in the rest.
    fn fills(&self) -> bool {
        2 * self.bytes_needed() > self.map_bytes() as u64
    }

    /// Returns the number of the last transaction.
    pub(super) fn version(&self) -> u64 {
        self.env.info().last_txn_id as u64
    }

    pub(super) fn map_bytes(&self) -> usize {
        self.env.info().map_size
    }

    pub(super) fn map_bytes_wanted(&self) -> usize {
        self.map_bytes_wanted.load(Ordering::Acquire)
    }

    /// Marks the environment, so that the next use opens it again with a map of at least
    /// `map_bytes`.
    pub(super) fn outgrow(&self, map_bytes: usize) {
        self.map_bytes_wanted.fetch_max(map_bytes, Ordering::AcqRel);
        self.is_outgrown.store(true, Ordering::Release);
    }

    /// Allows the file to be opened again as soon as the last user is done.
    pub(super) fn close(&self) {
        self.guard.close();
    }

    pub(super) fn snapshot(&self) -> heed::Result<RoTxn<'static, WithoutTls>> {
        match self.env.clone().static_read_txn() {
            Err(heed::Error::Mdb(MdbError::ReadersFull)) => {
                self.env.clear_stale_readers()?;
                self.env.clone().static_read_txn()
            }
            outcome => outcome,
        }
    }

    pub(super) fn writes(&self) -> heed::Result<RwTxn<'_>> {
        if self.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(COMMITS_PER_CHECK) {
            self.env.clear_stale_readers()?;
        }
        self.env.write_txn()
    }

    pub(super) fn table(&self, space: &str) -> Result<RecordTable> {
        let missing = || Error::Invalid { message: format!("there is no space {space}") };
        self.tables.get(space).copied().ok_or_else(missing)
    }
}

/// Tables that are valid once their transaction is committed.
struct NewTables<T>(Vec<T>);

impl<T: OnCommit> OnCommit for NewTables<T> {
    type Committed = Vec<T::Committed>;

    fn on_commit(self, token: &CommitToken) -> Self::Committed {
        self.0.into_iter().map(|table| table.on_commit(token)).collect()
    }
}

fn by_space(spaces: &[String], tables: Vec<RecordTable>, own: RecordTable) -> RecordTables {
    let mut by_space: RecordTables = spaces.iter().cloned().zip(tables).collect();
    by_space.insert(OWN.to_owned(), own);
    by_space
}

fn cut_short() -> Error {
    Error::Unavailable { what: format!("{DATA_FILE} is cut short") }
}

fn damaged() -> Error {
    Error::Corrupt { what: DATA_FILE }
}

/// Converts an error of LMDB to an error of the engine.
pub(super) fn problem(error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) if is_disk_full(&source) => Error::DiskFull,
        heed::Error::Io(source) => Error::Io { what: format!("use {DATA_FILE}"), source },
        heed::Error::Mdb(MdbError::MapFull | MdbError::TxnFull) => {
            Error::Unavailable { what: "it is full: try again, it has grown then".to_owned() }
        }
        heed::Error::Mdb(MdbError::ReadersFull) => {
            Error::Unavailable { what: "too many threads read it at once: try again".to_owned() }
        }
        heed::Error::Mdb(
            MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::Panic
            | MdbError::Problem
            | MdbError::VersionMismatch,
        ) => damaged(),
        other => Error::Database { what: "use the records", message: other.to_string() },
    }
}
