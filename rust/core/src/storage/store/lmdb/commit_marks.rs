//! Marks of the transactions that are being committed, seen by every process that has the store
//! open.
//!
//! A mark is a shared lock on one byte of LMDB's lock file, at the number of the transaction. The
//! system drops it when its process dies, before anybody can learn of the death by a closed
//! connection.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Offset of the mark of transaction 0: far beyond the offsets at which LMDB locks bytes, which are
/// process ids.
const MARKS_AT: usize = 1 << 40;

/// The marks that this process sets, and its view of those of others.
pub(super) struct CommitMarks {
    lock_file: File,
    /// The transaction that this process is committing, 0 for none: the system tells a process
    /// nothing of its own locks.
    own: AtomicUsize,
}

/// A mark, taken away when dropped.
pub(super) struct Mark<'m> {
    marks: &'m CommitMarks,
    transaction: usize,
}

impl CommitMarks {
    pub(super) fn on(lock_file: File) -> Self {
        Self { lock_file, own: AtomicUsize::new(0) }
    }

    /// Marks `transaction` as being committed. Others may have marked the number for a moment: LMDB
    /// gives it to the next one where a transaction changed nothing.
    pub(super) fn mark(&self, transaction: usize) -> io::Result<Mark<'_>> {
        self.lock(libc::F_SETLK, libc::F_RDLCK, transaction)?;
        self.own.store(transaction, Ordering::Release);
        Ok(Mark { marks: self, transaction })
    }

    /// True where a living process is committing `transaction`.
    pub(super) fn is_under_way(&self, transaction: usize) -> io::Result<bool> {
        if self.own.load(Ordering::Acquire) == transaction {
            return Ok(true);
        }
        let found = self.lock(libc::F_GETLK, libc::F_WRLCK, transaction)?;
        Ok(i32::from(found.l_type) != libc::F_UNLCK)
    }

    fn lock(
        &self,
        command: libc::c_int,
        kind: libc::c_int,
        transaction: usize,
    ) -> io::Result<libc::flock> {
        let start = MARKS_AT.checked_add(transaction).and_then(|at| libc::off_t::try_from(at).ok());
        let mut lock = libc::flock {
            l_type: libc::c_short::try_from(kind).map_err(io::Error::other)?,
            l_whence: libc::c_short::try_from(libc::SEEK_SET).map_err(io::Error::other)?,
            l_start: start.ok_or(io::ErrorKind::InvalidInput)?,
            l_len: 1,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open, and the call reads and writes `lock` and nothing else.
        #[expect(unsafe_code, reason = "the standard library locks whole files only")]
        let outcome = unsafe { libc::fcntl(self.lock_file.as_raw_fd(), command, &raw mut lock) };
        if outcome == 0 { Ok(lock) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.marks.own.store(0, Ordering::Release);
        // Giving up a lock that is held does not fail; one that stayed would go with the process.
        let _ = self.marks.lock(libc::F_SETLK, libc::F_UNLCK, self.transaction);
    }
}
