//! State of a log that is shared by all processes that have it open: a mapped file of one page.
//!
//! A process may be killed between any two stores to the state. So each word is correct by itself,
//! or shows that work must be completed. The process that opens the log alone makes the state
//! again, and keeps only [`MappedFile::witnessed`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::mutex::MutexSpace;
use super::tail::Tail;
use super::turns::Turns;
use crate::model::error::{Error, Result};
use crate::storage::store::gathering::GroupCounts;

/// Name of the file, next to the plane file.
pub(in crate::storage::store) const LOCK_FILE: &str = "plane.log-lock";
const PAGE_BYTES: usize = 4_096;
const MAGIC: u64 = 0x6b63_6f6c_676f_6c66;
/// An odd number with many bits set, which spreads the bits of a product.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The content of the file.
#[repr(C)]
struct SharedPage {
    magic: AtomicU64,
    log: AtomicU64,
    /// The log is durable up to this position.
    synced: AtomicU64,
    /// [`witness_of`] of `synced`, or for a moment of an earlier `synced`.
    witness: AtomicU64,
    /// Position of the end of the last frame.
    written: AtomicU64,
    /// Position of the last frame, or of the live file if it has no frame.
    last: AtomicU64,
    /// Equal to `written`, or greater while a frame is being written.
    reserved: AtomicU64,
    /// Position of the first byte of the live file.
    live: AtomicU64,
    /// Not 0 while another file becomes the live file.
    rotating: AtomicU64,
    /// Number of syncs that failed.
    failures: AtomicU64,
    /// Number of failed syncs that had happened when the end of the log was last written again.
    healed: AtomicU64,
    /// Number of syncs that were tried, for measurements.
    syncs: AtomicU64,
    turns: Turns,
    /// Transaction of LMDB whose head page may differ from the page on disk. 0 for none. Opening
    /// the log alone keeps the word.
    head_in_doubt: AtomicU64,
    /// Not 0 while a thread with the right to sync syncs. If its process dies, the word stays.
    syncing_now: AtomicU64,
    appending: MutexSpace,
    syncing: MutexSpace,
    gathering: GroupCounts,
}

/// The mapped file.
pub(in crate::storage::store) struct MappedFile {
    page: NonNull<SharedPage>,
    path: PathBuf,
}

// SAFETY: the words are atomic. The mutexes of the C library are made for use by any thread.
#[expect(unsafe_code, reason = "a pointer to shared memory")]
unsafe impl Send for MappedFile {}
// SAFETY: as for `Send`.
#[expect(unsafe_code, reason = "a pointer to shared memory")]
unsafe impl Sync for MappedFile {}

/// Positions to publish when a log was opened alone, or when a file became the live file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) live: u64,
    pub(super) last: u64,
    pub(super) end: u64,
}

impl MappedFile {
    /// Maps `file`, whose path is `path`.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the system refuses.
    pub(super) fn map(file: &File, path: &Path) -> Result<Self> {
        let page = map_page(file).map_err(|error| Error::io("map", path, error))?;
        Ok(Self { page, path: path.to_owned() })
    }

    fn page(&self) -> &SharedPage {
        // SAFETY: the page was mapped at its full length, and stays mapped until `self` is dropped.
        // The whole page is atomics and cells.
        #[expect(unsafe_code, reason = "a mapped file")]
        unsafe {
            self.page.as_ref()
        }
    }

    /// Makes the state for a log. The caller is alone with the log.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the system refuses to make a lock.
    pub(super) fn begin(&self, log: u64, ends: Ends) -> Result<()> {
        let page = self.page();
        page.magic.store(0, Ordering::Release);
        let counts = [&page.failures, &page.healed, &page.synced, &page.syncs];
        for word in counts.into_iter().chain([&page.rotating, &page.syncing_now]) {
            word.store(0, Ordering::Relaxed);
        }
        for space in [&page.appending, &page.syncing] {
            space.begin().map_err(|error| Error::io("make a lock in", &self.path, error))?;
        }
        page.log.store(log, Ordering::Relaxed);
        self.publish_ends(ends);
        page.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// # Errors
    /// Returns [`Error::Corrupt`] if this is not the state of the log that other processes have
    /// open.
    pub(super) fn join(&self, log: u64) -> Result<()> {
        let page = self.page();
        let is_theirs =
            page.magic.load(Ordering::Acquire) == MAGIC && page.log.load(Ordering::Relaxed) == log;
        if is_theirs { Ok(()) } else { Err(Error::Corrupt { what: "the log's lock file" }) }
    }

    /// Returns a position up to which `log` is known to have been durable, perhaps before the
    /// machine was started. There may be no such position, or the log may have been durable
    /// further.
    pub(super) fn witnessed(&self, log: u64) -> Option<u64> {
        let page = self.page();
        let synced = page.synced.load(Ordering::Acquire);
        let witness = page.witness.load(Ordering::Acquire);
        (witness == witness_of(log, synced)).then_some(synced)
    }

    pub(super) fn synced(&self) -> u64 {
        self.page().synced.load(Ordering::Acquire)
    }

    /// Publishes that the log is durable up to `end`.
    pub(super) fn publish_synced(&self, end: u64) {
        let page = self.page();
        page.synced.fetch_max(end, Ordering::AcqRel);
        let synced = page.synced.load(Ordering::Acquire);
        page.witness.store(witness_of(page.log.load(Ordering::Relaxed), synced), Ordering::Release);
    }

    pub(super) fn written(&self) -> u64 {
        self.page().written.load(Ordering::Acquire)
    }

    pub(super) fn reserved(&self) -> u64 {
        self.page().reserved.load(Ordering::Acquire)
    }

    /// Announces that a frame up to `end` may be written from now on.
    pub(super) fn reserve(&self, end: u64) {
        self.page().reserved.store(end, Ordering::Release);
    }

    /// Publishes that a frame from `start` to `end` was written.
    pub(super) fn publish_written(&self, start: u64, end: u64) {
        self.page().last.store(start, Ordering::Release);
        self.page().written.store(end, Ordering::Release);
    }

    pub(super) fn last(&self) -> u64 {
        self.page().last.load(Ordering::Acquire)
    }

    pub(super) fn live(&self) -> u64 {
        self.page().live.load(Ordering::Acquire)
    }

    pub(super) fn is_rotating(&self) -> bool {
        self.page().rotating.load(Ordering::Acquire) != 0
    }

    pub(super) fn set_rotating(&self, is_rotating: bool) {
        self.page().rotating.store(is_rotating.into(), Ordering::Release);
    }

    /// Publishes the end of a log that is durable as a whole. The order of the stores matters: no
    /// frame ever seems to be in progress.
    pub(super) fn publish_ends(&self, ends: Ends) {
        let page = self.page();
        page.live.store(ends.live, Ordering::Release);
        self.publish_synced(ends.end);
        page.last.store(ends.last, Ordering::Release);
        page.written.store(ends.end, Ordering::Release);
        page.reserved.store(ends.end, Ordering::Release);
    }

    pub(super) fn failures(&self) -> u64 {
        self.page().failures.load(Ordering::Acquire)
    }

    /// Announces a sync. The caller has the right to sync.
    pub(super) fn begin_sync(&self) {
        self.page().syncs.fetch_add(1, Ordering::Relaxed);
        self.page().syncing_now.store(1, Ordering::Release);
    }

    /// Ends the sync, after its outcome was published.
    pub(super) fn end_sync(&self) {
        self.page().syncing_now.store(0, Ordering::Release);
    }

    /// Returns true if a process died in its sync, so its outcome is unknown. The caller has the
    /// right to sync.
    pub(super) fn is_sync_cut_off(&self) -> bool {
        self.page().syncing_now.load(Ordering::Acquire) != 0
    }

    /// Returns the number of syncs that all processes have tried since the log was opened alone.
    #[cfg(test)]
    pub(super) fn syncs(&self) -> u64 {
        self.page().syncs.load(Ordering::Relaxed)
    }

    pub(super) fn note_failure(&self) {
        self.page().failures.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns true if a sync failed and the end of the log was not written again since.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.page().healed.load(Ordering::Acquire) != self.failures()
    }

    /// Returns the transaction of LMDB whose head page may differ from the page on disk.
    pub(in crate::storage::store) fn head_in_doubt(&self) -> Option<u64> {
        Some(self.page().head_in_doubt.load(Ordering::Acquire)).filter(|number| *number > 0)
    }

    /// Announces that the head page of `transaction` may be written from now on.
    pub(in crate::storage::store) fn doubt_head(&self, transaction: u64) {
        self.page().head_in_doubt.store(transaction, Ordering::Release);
    }

    /// Publishes that the head page of `transaction` is on disk, or was not written at all.
    pub(in crate::storage::store) fn trust_head(&self, transaction: u64) {
        let page = &self.page().head_in_doubt;
        // The next commit may have begun. The word then has another number and stays.
        let _ = page.compare_exchange(transaction, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Publishes that the end of the log was written again. The caller has the right to sync.
    pub(super) fn note_healed(&self) {
        self.page().healed.store(self.failures(), Ordering::Release);
        self.end_sync();
    }

    /// Takes the right to append, among all processes and threads.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the system refuses.
    pub(super) fn lock_appending(&self) -> Result<LogGuard<'_>> {
        let space = &self.page().appending;
        space.lock().map_err(|error| Error::io("lock", &self.path, error))?;
        Ok(LogGuard { space, stays_with_its_thread: std::marker::PhantomData })
    }

    /// Takes the right to sync. Returns `None` if another thread has it.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the system refuses.
    pub(super) fn try_lock_syncing(&self) -> Result<Option<SyncGuard<'_>>> {
        let is_locked = self.page().syncing.try_lock();
        let is_locked = is_locked.map_err(|error| Error::io("lock", &self.path, error))?;
        Ok(is_locked.then(|| self.syncing()))
    }

    /// Waits for the right that [`Self::try_lock_syncing`] tries to take.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the system refuses.
    pub(super) fn lock_syncing(&self) -> Result<SyncGuard<'_>> {
        let locked = self.page().syncing.lock();
        locked.map_err(|error| Error::io("lock", &self.path, error))?;
        Ok(self.syncing())
    }

    fn syncing(&self) -> SyncGuard<'_> {
        SyncGuard { page: self.page(), stays_with_its_thread: std::marker::PhantomData }
    }

    /// Returns the counts of writers that are likely to append before a sync.
    pub(super) fn gathering(&self) -> &GroupCounts {
        &self.page().gathering
    }

    /// Returns the turns of threads with the right to sync.
    pub(super) fn turns(&self) -> &Turns {
        &self.page().turns
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: no borrow of the page is left.
        #[expect(unsafe_code, reason = "a mapped file")]
        unsafe {
            libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES);
        }
    }
}

/// Opens the file at `path`, and makes it if it does not exist.
///
/// # Errors
/// Returns [`Error::DiskFull`] or [`Error::Io`] if the file cannot be made or opened.
pub(super) fn open_file(path: &Path) -> Result<File> {
    let opened = || {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(path)?;
        let length = file.metadata()?.len();
        if length < PAGE_BYTES as u64 {
            // Every byte needs a place on disk now, because a store to the map could not report a
            // full disk.
            let rest = vec![0; PAGE_BYTES - usize::try_from(length).unwrap_or(PAGE_BYTES)];
            file.write_all_at(&rest, length)?;
        }
        Ok(file)
    };
    opened().map_err(|error| Error::io("open", path, error))
}

fn map_page(file: &File) -> io::Result<NonNull<SharedPage>> {
    const { assert!(size_of::<SharedPage>() <= PAGE_BYTES) };
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: this is a new mapping. The file has this length, and no process cuts it short.
    #[expect(unsafe_code, reason = "a mapped file")]
    let page =
        unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, access, kind, file.as_raw_fd(), 0) };
    match NonNull::new(page.cast::<SharedPage>()) {
        Some(mapped) if page != libc::MAP_FAILED => Ok(mapped),
        _ => Err(io::Error::last_os_error()),
    }
}

fn witness_of(log: u64, synced: u64) -> u64 {
    (synced ^ log).wrapping_mul(MIX) ^ log.rotate_left(32)
}

/// Reads the last frame's position from the state at `path`, without a map. The position may be
/// wrong.
pub(super) fn last_at(path: &Path, log: u64) -> Option<u64> {
    let mut words = [0; 48];
    File::open(path).ok()?.read_exact_at(&mut words, 0).ok()?;
    let mut numbers = words.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let is_of_log = numbers.next()? == MAGIC && numbers.next()? == log;
    numbers.nth(3).filter(|_| is_of_log)
}

/// A lock that this thread holds.
pub(super) struct LogGuard<'s> {
    space: &'s MutexSpace,
    stays_with_its_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for LogGuard<'_> {
    fn drop(&mut self) {
        self.space.unlock();
    }
}

/// The right to sync, held by this thread.
pub(super) struct SyncGuard<'s> {
    page: &'s SharedPage,
    stays_with_its_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        self.page.syncing.unlock();
        self.page.turns.end();
    }
}

/// Returns the ends of a log that is durable up to `tail`.
pub(super) fn ends(live: u64, last: u64, tail: &Tail) -> Ends {
    Ends { live, last, end: tail.end }
}
