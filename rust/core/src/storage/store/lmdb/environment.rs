//! An LMDB environment that grows when needed, refuses use after a fork, and frees stale readers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use heed::{
    CommitOrAbort, DatabaseOpener, Env, EnvFlags, EnvOpenOptions, MdbError, OnCommit, RoTxn, RwTxn,
    WithoutTls,
};

use super::check;
use super::commit_marks::CommitMarks;
use super::disk_space::{can_grow, reserved_lock_file};
use super::errors::{TxnError, TxnResult, database_error, open_error};
use super::head_pages::HeadPages;
use super::open_guard::OpenGuard;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::ByteLocks;
use crate::storage::store::log::OpenPermit;

/// Bytes of the map of a new environment. The map is address space, not memory or disk.
const MAP_BYTES_MIN: usize = 64 << 20;

/// Most reader slots: threads of all processes that read at the same time.
const READERS_MAX: u32 = 1_024;

/// Number of commits between two searches for readers whose process ended. Bounds the pages that
/// such readers keep.
pub(super) const COMMITS_PER_CHECK: u32 = 256;

/// Most snapshots that the check tries. A snapshot fails if its head page is overwritten before it
/// is read, which takes two commits.
const CHECKS_MAX: u32 = 16;

pub(super) struct PlaneEnvironment {
    env: Env<WithoutTls>,
    /// The data file, to read its length.
    file: File,
    page_bytes: usize,
    /// Closed after `env`: when a process closes a descriptor of a file, the system drops all locks
    /// of the process on the file. Without its locks this process would be taken for dead.
    heads: HeadPages,
    path: PathBuf,
    /// Every transaction holds the gate shared. A resize of the map holds it exclusively, because
    /// LMDB allows a resize only while this process has no transaction open.
    resize_gate: RwLock<()>,
    process_id: u32,
    /// Number of write transactions begun.
    writes: AtomicU32,
    /// The guard is dropped last, after all descriptors of the lock file are closed.
    guard: OpenGuard,
}

impl PlaneEnvironment {
    /// Opens or makes the environment at `path`, with its lock file next to it.
    pub(super) fn open(path: &Path, tables: u32, opening: &OpenPermit) -> Result<Self> {
        let guard = OpenGuard::on(path)?;
        let stored = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let map_bytes = map_bytes_for(usize::try_from(stored).unwrap_or(usize::MAX));
        // No thread-local slots: each environment would need one of the process's 1,024 keys.
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(tables);
        // The flag NO_MEM_INIT is not set: with it, freed heap bytes, plaintext among them, could
        // reach the disk. NO_SUB_DIR only names the file.
        //
        // SAFETY: only this code changes the file. The file lives in a directory of mode 0700,
        // every process opens it through this function, with locking on, and no process truncates
        // it. The guard keeps this process from opening it twice.
        #[expect(unsafe_code, reason = "a memory-mapped file cannot be opened safely")]
        let env = unsafe { options.flags(EnvFlags::NO_SUB_DIR).open(path) };
        let env = env.map_err(|error| open_error(path, error))?;
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push("-lock");
        let lock_file = reserved_lock_file(Path::new(&lock_path))?;
        let file = env.try_clone_inner_file().map_err(|error| open_error(path, error))?;
        let commits = CommitMarks::on(Arc::new(ByteLocks::on(lock_file)));
        let page_bytes = env.unnamed_database_stat().page_size as usize;
        let opened = Self {
            env,
            file,
            page_bytes,
            heads: HeadPages::new(commits, Arc::clone(&opening.shared), page_bytes),
            path: path.to_owned(),
            resize_gate: RwLock::new(()),
            process_id: std::process::id(),
            writes: AtomicU32::new(0),
            guard,
        };
        opened.make_safe()?;
        if opening.is_alone && opened.heads.in_doubt().is_some() {
            let failed = |error| open_error(path, error);
            let txn = opened.env.write_txn().map_err(failed)?;
            opened.heads.settle(txn.id(), &opened.file, path)?;
        }
        opened.free_stale_readers()?;
        Ok(opened)
    }

    /// Returns the locks on bytes of LMDB's lock file, which is open once. A holder of these locks
    /// must drop them before the environment.
    pub(super) fn byte_locks(&self) -> &Arc<ByteLocks> {
        self.heads.byte_locks()
    }

    /// Sets the times of the data file to now. The times tell when a file of the plane was last
    /// written.
    pub(super) fn touch(&self) {
        // A failure is ignored: processes that watch the file also look from time to time.
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// # Errors
    /// Returns [`Error::Forked`] in a forked child, and [`Error::Closed`] after [`Self::close`].
    pub(super) fn check_usable(&self) -> Result<()> {
        self.check_process()?;
        self.check_open()
    }

    /// # Errors
    /// Returns [`Error::Forked`] in a forked child.
    pub(super) fn check_process(&self) -> Result<()> {
        if std::process::id() == self.process_id { Ok(()) } else { Err(Error::Forked) }
    }

    /// Refuses new transactions. The file can be opened again once the environment is dropped.
    pub(super) fn close(&self) {
        self.guard.close();
    }

    /// # Errors
    /// Returns [`Error::Closed`] after [`Self::close`].
    pub(super) fn check_open(&self) -> Result<()> {
        if self.guard.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Makes sure that use of the file cannot end the process. Each page of the trees must be
    /// sound. The file must be as long as its head says, because a mapped page behind the end of
    /// the file must not be touched. LMDB sometimes leaves free pages at the end unwritten.
    fn make_safe(&self) -> Result<()> {
        let failed = |error| open_error(&self.path, error);
        let io_failed = |error| Error::io("make sure of", &self.path, error);
        let length = || Ok(self.file.metadata().map_err(io_failed)?.len());
        let bytes_max = length()?.saturating_mul(2).saturating_add(MAP_BYTES_MIN as u64);
        if self.bytes_needed() > bytes_max {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        let last_page_max = bytes_max / self.page_bytes as u64;
        // The snapshot protects its pages from being overwritten, so no writer has to wait.
        let check = || {
            let txn = self.snapshot()?;
            Ok(check::check(&self.file, self.page_bytes, txn.id() as u64, last_page_max)?)
        };
        let mut outcome = Err(Error::Stale);
        for _ in 0..CHECKS_MAX {
            outcome = self.retrying("check the store", check);
            if !matches!(outcome, Err(Error::Stale)) {
                break;
            }
        }
        match outcome {
            Err(Error::Stale) => return Err(Error::Corrupt { what: "the store's database" }),
            outcome => outcome?,
        }
        // Not earlier: the length shows other processes with a map that the file was cut short.
        if length()? < self.bytes_needed() {
            // Only a writer makes the file longer, and this transaction keeps writers out.
            let _txn = self.env.write_txn().map_err(failed)?;
            let bytes = self.bytes_needed();
            if length()? < bytes {
                self.file.set_len(bytes).map_err(io_failed)?;
            }
        }
        Ok(())
    }

    /// Returns the length that the file has by its head, in bytes.
    fn bytes_needed(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * self.page_bytes as u64
    }

    /// Detects a file that was cut short after it was mapped. Runs after a transaction begins and
    /// before the transaction follows its pages. The length seen last may be shorter than the rest
    /// of the file, so only the head shows the cut.
    ///
    /// # Errors
    /// Returns [`TxnError::Short`], also if LMDB left free pages at the end unwritten.
    fn check_length(&self) -> TxnResult<()> {
        // Read before the length, because writers make the file longer before they change its head.
        let bytes_needed = self.bytes_needed();
        if self.file.metadata()?.len() < bytes_needed { Err(TxnError::Short) } else { Ok(()) }
    }

    /// Returns true if no transaction was ever committed.
    pub(super) fn is_new(&self) -> bool {
        self.env.info().last_txn_id == 0
    }

    /// Makes the named tables that `make` asks for.
    pub(super) fn create_tables<'e, D: OnCommit + 'e>(
        &'e self,
        make: impl FnOnce(&DatabaseOpener<'e, WithoutTls>, &mut RwTxn<'e>) -> heed::Result<D>,
    ) -> Result<D::Committed> {
        let failed = |error| open_error(&self.path, error);
        let txn = self.env.write_txn().map_err(failed)?;
        committed(
            self.env.create_databases_and_commit(txn, |opener, txn| {
                make(opener, txn).map(CommitOrAbort::Commit)
            }),
            failed,
        )
    }

    /// Opens the named tables that `open` asks for. Does not wait for a writer.
    pub(super) fn open_tables<'e, D: OnCommit + 'e>(
        &'e self,
        open: impl FnOnce(&DatabaseOpener<'e, WithoutTls>, &RoTxn<'e, WithoutTls>) -> heed::Result<D>,
    ) -> Result<D::Committed> {
        let failed = |error| open_error(&self.path, error);
        let txn = self.env.read_txn().map_err(failed)?;
        committed(
            self.env.open_databases_and_commit(txn, |opener, txn| {
                open(opener, txn).map(CommitOrAbort::Commit)
            }),
            failed,
        )
    }

    /// Runs `work` on one snapshot. `work` must not open another transaction of this environment.
    pub(super) fn read<R>(
        &self,
        what: &'static str,
        work: impl Fn(&RoTxn<'_, WithoutTls>) -> TxnResult<R>,
    ) -> Result<R> {
        self.retrying(what, || {
            let txn = self.snapshot()?;
            self.check_length()?;
            work(&txn)
        })
    }

    /// Begins a snapshot of the last commit, even if the process that committed was killed before
    /// LMDB published it.
    ///
    /// LMDB writes its head page, and then the number of the transaction for new readers. A commit
    /// that was cut off in between would be missing from every read until the next write.
    fn snapshot(&self) -> TxnResult<RoTxn<'_, WithoutTls>> {
        let mut before = None;
        loop {
            let txn = self.env.read_txn()?;
            let unsure = self.heads.unsure(txn.id(), self.env.info().last_txn_id);
            if unsure.map_or(Ok(true), |number| self.heads.is_under_way(number))? {
                return Ok(txn);
            }
            drop(txn);
            // A commit removes its mark after its number was published and can be trusted. So the
            // second look finds the number settled, unless the process died or failed.
            if before.is_some() && before == unsure {
                // LMDB publishes the commit of a dead writer when the next writer takes the lock.
                // The pages of the commit were synced before its head page, but perhaps the head
                // page was not. A power cut must not take back a commit that reads have shown.
                let txn = self.env.write_txn()?;
                self.heads.settle(txn.id(), &self.file, &self.path)?;
                drop(txn);
                return Ok(self.env.read_txn()?);
            }
            before = unsure;
        }
    }

    /// Runs `work` in a write transaction and commits it durably. If this fails, no change stays.
    /// If the map has to grow, `work` runs again.
    pub(super) fn write<R>(
        &self,
        what: &'static str,
        work: impl Fn(&mut RwTxn<'_>) -> TxnResult<R>,
    ) -> Result<R> {
        self.retrying(what, || {
            let written = self.writes.fetch_add(1, Ordering::Relaxed);
            if written % COMMITS_PER_CHECK == COMMITS_PER_CHECK - 1 {
                self.free_stale_readers()?;
            }
            let mut txn = self.env.write_txn()?;
            self.check_length()?;
            self.heads.settle(txn.id(), &self.file, &self.path)?;
            let result = work(&mut txn)?;
            let commit = self.heads.begin_commit(txn.id())?;
            let committed = txn.commit().map_err(|error| self.commit_error(what, error));
            commit.end(!matches!(committed, Err(TxnError::Engine(_))));
            committed.map(|()| result)
        })
    }

    /// Converts an error of a commit. LMDB writes its head page last. If that write failed, the
    /// commit may be on disk, and LMDB refuses all work. A full disk does not cause this failure.
    fn commit_error(&self, what: &'static str, error: heed::Error) -> TxnError {
        match (error, self.env.read_txn()) {
            (heed::Error::Io(source), Err(heed::Error::Mdb(MdbError::Panic))) => {
                TxnError::Engine(Error::Io { what: what.to_owned(), source })
            }
            (error, _) => TxnError::Lmdb(error),
        }
    }

    fn retrying<R>(&self, what: &'static str, attempt: impl Fn() -> TxnResult<R>) -> Result<R> {
        loop {
            self.check_usable()?;
            let gate = self.resize_gate.read().unwrap_or_else(PoisonError::into_inner);
            let outcome = attempt();
            drop(gate);
            match outcome {
                Ok(result) => return Ok(result),
                Err(TxnError::Engine(error)) => return Err(error),
                Err(TxnError::Short) => self.make_safe()?,
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::MapFull))) => self.grow(true)?,
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::MapResized))) => self.grow(false)?,
                Err(TxnError::Lmdb(heed::Error::Mdb(MdbError::ReadersFull))) => {
                    if self.free_stale_readers()? == 0 {
                        let message = format!("more than {READERS_MAX} threads read at once");
                        return Err(Error::Database { what, message });
                    }
                }
                // LMDB reports a write that the system cut short as this error. It may also be a
                // device fault on a full disk. The old state is then still valid. A commit takes
                // effect with the page that LMDB writes last, and LMDB refuses all work if that
                // write fails.
                Err(TxnError::Lmdb(heed::Error::Io(error)))
                    if error.raw_os_error() == Some(libc::EIO) && self.is_disk_full() =>
                {
                    return Err(Error::DiskFull);
                }
                Err(TxnError::Lmdb(error)) => return Err(database_error(what, error)),
            }
        }
    }

    /// Doubles the map if `double`, otherwise takes the size that another process gave the map.
    fn grow(&self, double: bool) -> Result<()> {
        let _gate = self.resize_gate.write().unwrap_or_else(PoisonError::into_inner);
        if double && self.free_stale_readers()? > 0 {
            // The pages that these readers kept may be enough.
            return Ok(());
        }
        let size = if double { map_bytes_for(self.env.info().map_size) } else { 0 };
        // SAFETY: the gate is held exclusively, so this process has no transaction open.
        #[expect(unsafe_code, reason = "LMDB cannot check that no transaction is open")]
        let resized = unsafe { self.env.resize(size) };
        resized.map_err(|error| database_error("grow the store's map", error))
    }

    /// Frees the slots of readers whose process ended. Returns the number of freed slots.
    fn free_stale_readers(&self) -> Result<usize> {
        let freed = self.env.clear_stale_readers();
        freed.map_err(|error| database_error("free stale readers", error))
    }

    /// Returns true if the file cannot get longer.
    fn is_disk_full(&self) -> bool {
        !can_grow(&self.file)
    }

    /// Returns the numbers that LMDB reports about itself.
    #[cfg(test)]
    pub(super) fn info(&self) -> heed::EnvInfo {
        self.env.info()
    }

    /// Returns the bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes as u64
    }

    /// Returns the bytes of the file.
    pub(super) fn file_bytes(&self) -> Result<u64> {
        let size = self.env.real_disk_size();
        size.map_err(|error| database_error("read the size of the store", error))
    }
}

fn committed<C>(
    outcome: heed::Result<CommitOrAbort<C, ()>>,
    failed: impl Fn(heed::Error) -> Error,
) -> Result<C> {
    match outcome.map_err(failed)? {
        CommitOrAbort::Commit(tables) => Ok(tables),
        CommitOrAbort::Abort(()) => Err(Error::Corrupt { what: "the store's table list" }),
    }
}

/// Returns twice `used`, rounded down to a multiple of [`MAP_BYTES_MIN`] and so of the page size.
/// The least is [`MAP_BYTES_MIN`]. Example: a file of 100 MiB gets a map of 192 MiB.
fn map_bytes_for(used: usize) -> usize {
    used.saturating_mul(2).max(MAP_BYTES_MIN) / MAP_BYTES_MIN * MAP_BYTES_MIN
}
