//! An LMDB environment that grows by itself, never survives a fork, and frees stale readers.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use heed::{
    CommitOrAbort, DatabaseOpener, Env, EnvFlags, EnvOpenOptions, MdbError, OnCommit, RoTxn, RwTxn,
    WithTls,
};

use crate::error::{Error, Result, is_disk_full};

/// Map of a new environment, bytes. The map is address space, not memory or disk.
const MAP_BYTES_MIN: usize = 64 << 20;

/// Reader slots: one per thread that reads at the same moment, over all processes.
const READERS_MAX: u32 = 1_024;

pub(super) struct Environment {
    env: Env<WithTls>,
    path: PathBuf,
    /// Held shared by every transaction and exclusively while the map is resized, which LMDB
    /// allows only while this process has no transaction open.
    resize_gate: RwLock<()>,
    process_id: u32,
}

impl Environment {
    /// Opens or makes the environment at `path`, a file beside its lock file.
    pub(super) fn open(path: &Path, tables: u32) -> Result<Self> {
        let stored = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let map_bytes = map_bytes_for(usize::try_from(stored).unwrap_or(usize::MAX));
        let mut options = EnvOpenOptions::new();
        options.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(tables);
        // NO_MEM_INIT is left out on purpose: it would let freed heap bytes, plaintext among
        // them, reach the disk. NO_SUB_DIR only names the file.
        //
        // SAFETY: the file is ours alone: it lives in a directory of mode 0700, every process
        // opens it through this function, with locking on, and no process truncates it. heed
        // itself refuses to open it twice in one process.
        #[expect(unsafe_code, reason = "a memory-mapped file cannot be opened safely")]
        let env = unsafe { options.flags(EnvFlags::NO_SUB_DIR).open(path) };
        let env = env.map_err(|error| open_error(path, error))?;
        let opened = Self {
            env,
            path: path.to_owned(),
            resize_gate: RwLock::new(()),
            process_id: std::process::id(),
        };
        opened.back_with_file()?;
        opened.free_stale_readers()?;
        Ok(opened)
    }

    /// Makes the file as long as its own head says: touching a mapped page that no file stands
    /// behind would kill the process. LMDB leaves pages at the end unwritten now and then, which
    /// is sound. In a file that was cut short the zeros added here are no page and no sealed
    /// block, and say so when they are read.
    fn back_with_file(&self) -> Result<()> {
        let failed = |error| open_error(&self.path, error);
        // Only a writer makes the file longer, so nobody else does while this transaction lives.
        let txn = self.env.write_txn().map_err(failed)?;
        let page_bytes = u64::from(self.env.unnamed_database_stat().page_size);
        let needed = (self.env.info().last_page_number as u64 + 1).saturating_mul(page_bytes);
        let file = self.env.try_clone_inner_file().map_err(failed)?;
        let io_failed = |error| Error::io("extend", &self.path, error);
        let length = file.metadata().map_err(io_failed)?.len();
        if needed > length.saturating_mul(2).saturating_add(MAP_BYTES_MIN as u64) {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        if length < needed {
            file.set_len(needed).map_err(io_failed)?;
        }
        drop(txn);
        Ok(())
    }

    /// Opens the named tables that `open` asks for, making those that are missing.
    pub(super) fn create_tables<'e, D: OnCommit + 'e>(
        &'e self,
        open: impl FnOnce(&DatabaseOpener<'e, WithTls>, &mut RwTxn<'e>) -> heed::Result<D>,
    ) -> Result<D::Committed> {
        let failed = |error| open_error(&self.path, error);
        let txn = self.env.write_txn().map_err(failed)?;
        let outcome: heed::Result<CommitOrAbort<D::Committed, ()>> =
            self.env.create_databases_and_commit(txn, |opener, txn| {
                open(opener, txn).map(CommitOrAbort::Commit)
            });
        match outcome.map_err(failed)? {
            CommitOrAbort::Commit(tables) => Ok(tables),
            CommitOrAbort::Abort(()) => Err(Error::Corrupt { what: "the store's table list" }),
        }
    }

    /// Runs `work` on one snapshot. It must not open another transaction of this environment.
    pub(super) fn read<R>(
        &self,
        what: &'static str,
        work: impl Fn(&RoTxn<'_, WithTls>) -> TxnResult<R>,
    ) -> Result<R> {
        self.retrying(what, || work(&self.env.read_txn()?))
    }

    /// Runs `work` in a write transaction and commits it durably; nothing of it stays otherwise.
    /// `work` runs again when the map had to grow.
    pub(super) fn write<R>(
        &self,
        what: &'static str,
        work: impl Fn(&mut RwTxn<'_>) -> TxnResult<R>,
    ) -> Result<R> {
        self.retrying(what, || {
            let mut txn = self.env.write_txn()?;
            let result = work(&mut txn)?;
            txn.commit()?;
            Ok(result)
        })
    }

    fn retrying<R>(&self, what: &'static str, attempt: impl Fn() -> TxnResult<R>) -> Result<R> {
        if std::process::id() != self.process_id {
            return Err(Error::Forked);
        }
        loop {
            let gate = self.resize_gate.read().unwrap_or_else(PoisonError::into_inner);
            let outcome = attempt();
            drop(gate);
            match outcome {
                Ok(result) => return Ok(result),
                Err(TxnError::Engine(error)) => return Err(error),
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::MapFull))) => self.grow(true)?,
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::MapResized))) => self.grow(false)?,
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::ReadersFull))) => {
                    self.free_stale_readers()?;
                }
                Err(TxnError::Lmdb(error)) => return Err(database_error(what, error)),
            }
        }
    }

    /// Doubles the map where `double`, else follows the size another process gave it.
    fn grow(&self, double: bool) -> Result<()> {
        let _gate = self.resize_gate.write().unwrap_or_else(PoisonError::into_inner);
        let size = if double { map_bytes_for(self.env.info().map_size) } else { 0 };
        // SAFETY: the gate is held exclusively, so this process has no transaction open.
        #[expect(unsafe_code, reason = "LMDB cannot check that no transaction is open")]
        let resized = unsafe { self.env.resize(size) };
        resized.map_err(|error| database_error("grow the store's map", error))
    }

    fn free_stale_readers(&self) -> Result<()> {
        let freed = self.env.clear_stale_readers();
        let freed = freed.map_err(|error| database_error("free stale readers", error))?;
        if freed == 0 && self.env.info().number_of_readers >= READERS_MAX {
            let message = format!("more than {READERS_MAX} threads read at once");
            return Err(Error::Database { what: "start reading", message });
        }
        Ok(())
    }

    /// Bytes of the file.
    pub(super) fn file_bytes(&self) -> Result<u64> {
        let size = self.env.real_disk_size();
        size.map_err(|error| database_error("read the size of the store", error))
    }
}

/// Twice `used`, a multiple of every page size, at least [`MAP_BYTES_MIN`].
fn map_bytes_for(used: usize) -> usize {
    used.saturating_mul(2).max(MAP_BYTES_MIN) / MAP_BYTES_MIN * MAP_BYTES_MIN
}

/// What stops a transaction: LMDB, or what the engine found in it.
pub(super) enum TxnError {
    Lmdb(heed::Error),
    Engine(Error),
}

pub(super) type TxnResult<R> = std::result::Result<R, TxnError>;

impl From<heed::Error> for TxnError {
    fn from(error: heed::Error) -> Self {
        Self::Lmdb(error)
    }
}

impl From<Error> for TxnError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// The engine's word for what LMDB answered while doing `what`.
fn database_error(what: &'static str, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) if is_disk_full(&source) => Error::DiskFull,
        heed::Error::Io(source) => Error::Io { what: what.to_owned(), source },
        heed::Error::Mdb(
            MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch,
        ) => Error::Corrupt { what: "the store's database" },
        other => Error::Database { what, message: other.to_string() },
    }
}

fn open_error(path: &Path, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) => Error::io("open", path, source),
        other => database_error("open the store", other),
    }
}
