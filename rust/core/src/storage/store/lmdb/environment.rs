//! An LMDB environment that grows by itself, never survives a fork, and frees stale readers.

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
use super::claim::Claim;
use super::commit_marks::CommitMarks;
use super::disk_space::{can_grow, reserved_lock_file};
use super::errors::{TxnError, TxnResult, database_error, open_error};
use super::head_pages::HeadPages;
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::ByteLocks;
use crate::storage::store::log::Opening;

/// Map of a new environment, bytes. The map is address space, not memory or disk.
const MAP_BYTES_MIN: usize = 64 << 20;

/// Reader slots: one per thread that reads at the same moment, over all processes.
const READERS_MAX: u32 = 1_024;

/// Commits between two looks for readers whose process is gone: bounds the pages they pin.
pub(super) const COMMITS_PER_CHECK: u32 = 256;

/// Snapshots tried for one whose head page is not written over before it is read, which takes two
/// commits.
const CHECKS_MAX: u32 = 16;

pub(super) struct Environment {
    env: Env<WithoutTls>,
    /// The data file, to ask for its length.
    file: File,
    page_bytes: usize,
    /// Closed after `env`, never before: the system drops every lock a process has on a file as
    /// soon as it closes any descriptor of it, and with its locks this process would pass for dead.
    heads: HeadPages,
    path: PathBuf,
    /// Held shared by every transaction and exclusively while the map is resized, which LMDB
    /// allows only while this process has no transaction open.
    resize_gate: RwLock<()>,
    process_id: u32,
    /// Write transactions begun.
    writes: AtomicU32,
    /// Given up last, when no descriptor of the lock file is left to be closed.
    claim: Claim,
}

impl Environment {
    /// Opens or makes the environment at `path`, a file beside its lock file.
    pub(super) fn open(path: &Path, tables: u32, opening: &Opening) -> Result<Self> {
        let claim = Claim::on(path)?;
        let stored = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let map_bytes = map_bytes_for(usize::try_from(stored).unwrap_or(usize::MAX));
        // Without thread-local slots: a key of those for each environment, and a process has 1,024.
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(map_bytes).max_readers(READERS_MAX).max_dbs(tables);
        // NO_MEM_INIT is left out on purpose: it would let freed heap bytes, plaintext among
        // them, reach the disk. NO_SUB_DIR only names the file.
        //
        // SAFETY: the file is ours alone: it lives in a directory of mode 0700, every process
        // opens it through this function, with locking on, and no process truncates it. The claim
        // keeps this process from opening it twice.
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
            claim,
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

    /// Locks on bytes of LMDB's lock file, which is open once. Whoever has these gives them up before
    /// the environment.
    pub(super) fn byte_locks(&self) -> &Arc<ByteLocks> {
        self.heads.byte_locks()
    }

    /// Sets the times of the data file to now: they tell when something of the plane was last
    /// written, whichever file it went to.
    pub(super) fn touch(&self) {
        // Watchers of the file look again, sooner or later, also where this cannot be done.
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// # Errors
    /// [`Error::Forked`], [`Error::Closed`].
    pub(super) fn check_usable(&self) -> Result<()> {
        self.check_process()?;
        self.check_open()
    }

    /// # Errors
    /// [`Error::Forked`].
    pub(super) fn check_process(&self) -> Result<()> {
        if std::process::id() == self.process_id { Ok(()) } else { Err(Error::Forked) }
    }

    /// Lets no transaction begin any more. The file can be opened anew once this is dropped.
    pub(super) fn close(&self) {
        self.claim.close();
    }

    /// # Errors
    /// [`Error::Closed`].
    pub(super) fn check_open(&self) -> Result<()> {
        if self.claim.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Makes sure that using the file cannot end the process: each page of its trees is sound, and
    /// the file is as long as its own head says, since a mapped page that no file stands behind
    /// must not be touched. LMDB leaves free pages at the end unwritten now and then.
    fn make_safe(&self) -> Result<()> {
        let failed = |error| open_error(&self.path, error);
        let io_failed = |error| Error::io("make sure of", &self.path, error);
        let length = || Ok(self.file.metadata().map_err(io_failed)?.len());
        let bytes_max = length()?.saturating_mul(2).saturating_add(MAP_BYTES_MIN as u64);
        if self.bytes_needed() > bytes_max {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        let last_page_max = bytes_max / self.page_bytes as u64;
        // The snapshot keeps its pages from being written over, so no writer has to wait for this.
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
        // Not before: others who have mapped a file that was cut short tell so by its length.
        if length()? < self.bytes_needed() {
            // Only a writer makes the file longer, so nobody does while this transaction lives.
            let _txn = self.env.write_txn().map_err(failed)?;
            let bytes = self.bytes_needed();
            if length()? < bytes {
                self.file.set_len(bytes).map_err(io_failed)?;
            }
        }
        Ok(())
    }

    /// Length of the file as its own head has it.
    fn bytes_needed(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * self.page_bytes as u64
    }

    /// Finds a file that was cut short since it was mapped, after a transaction has begun and
    /// before it follows its pages: what it last saw of the file may be shorter than what is left.
    ///
    /// # Errors
    /// [`TxnError::Short`] also where LMDB left free pages at the end unwritten.
    fn check_length(&self) -> TxnResult<()> {
        // Before the length: writers make the file longer before they change its head.
        let bytes_needed = self.bytes_needed();
        if self.file.metadata()?.len() < bytes_needed { Err(TxnError::Short) } else { Ok(()) }
    }

    /// True where nothing was ever committed.
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

    /// Opens the named tables that `open` asks for. It waits for no writer.
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

    /// Runs `work` on one snapshot. It must not open another transaction of this environment.
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

    /// A snapshot of the last commit, also of one whose process was killed before LMDB published
    /// it.
    ///
    /// LMDB writes its head page, then the number of the transaction that readers begin with. A
    /// commit cut off in between would be absent from every read until somebody's next write.
    fn snapshot(&self) -> TxnResult<RoTxn<'_, WithoutTls>> {
        let mut before = None;
        loop {
            let txn = self.env.read_txn()?;
            let unsure = self.heads.unsure(txn.id(), self.env.info().last_txn_id);
            if unsure.map_or(Ok(true), |number| self.heads.is_under_way(number))? {
                return Ok(txn);
            }
            drop(txn);
            // The mark goes after the number was published and can be trusted, so the second look
            // finds it so, unless its process died or failed.
            if before.is_some() && before == unsure {
                // LMDB publishes what a dead writer left when the next one takes its lock. Its pages
                // were synced before its head page; the head page perhaps was not, and a power cut
                // must not take back what reads have shown.
                let txn = self.env.write_txn()?;
                self.heads.settle(txn.id(), &self.file, &self.path)?;
                drop(txn);
                return Ok(self.env.read_txn()?);
            }
            before = unsure;
        }
    }

    /// Runs `work` in a write transaction and commits it durably; nothing of it stays otherwise.
    /// `work` runs again when the map had to grow.
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

    /// A commit that failed on LMDB's head page, its last write, may have taken effect on disk, and
    /// LMDB refuses all work from then on. A full disk explains none of this.
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
                // LMDB reports a write that the system cut short so. Should it be a device
                // fault on a full disk after all, then the old state still stands: LMDB commits by
                // a page that it writes last, and refuses all work when that one fails.
                Err(TxnError::Lmdb(heed::Error::Io(error)))
                    if error.raw_os_error() == Some(libc::EIO) && self.is_disk_full() =>
                {
                    return Err(Error::DiskFull);
                }
                Err(TxnError::Lmdb(error)) => return Err(database_error(what, error)),
            }
        }
    }

    /// Doubles the map where `double`, else follows the size another process gave it.
    fn grow(&self, double: bool) -> Result<()> {
        let _gate = self.resize_gate.write().unwrap_or_else(PoisonError::into_inner);
        if double && self.free_stale_readers()? > 0 {
            // The pages they pinned may be enough.
            return Ok(());
        }
        let size = if double { map_bytes_for(self.env.info().map_size) } else { 0 };
        // SAFETY: the gate is held exclusively, so this process has no transaction open.
        #[expect(unsafe_code, reason = "LMDB cannot check that no transaction is open")]
        let resized = unsafe { self.env.resize(size) };
        resized.map_err(|error| database_error("grow the store's map", error))
    }

    /// Frees the slots of readers whose process is gone; returns how many there were.
    fn free_stale_readers(&self) -> Result<usize> {
        let freed = self.env.clear_stale_readers();
        freed.map_err(|error| database_error("free stale readers", error))
    }

    /// True where the file cannot get longer.
    fn is_disk_full(&self) -> bool {
        !can_grow(&self.file)
    }

    /// Numbers that LMDB gives of itself.
    #[cfg(test)]
    pub(super) fn info(&self) -> heed::EnvInfo {
        self.env.info()
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes as u64
    }

    /// Bytes of the file.
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

/// Twice `used`, a multiple of every page size, at least [`MAP_BYTES_MIN`].
fn map_bytes_for(used: usize) -> usize {
    used.saturating_mul(2).max(MAP_BYTES_MIN) / MAP_BYTES_MIN * MAP_BYTES_MIN
}
