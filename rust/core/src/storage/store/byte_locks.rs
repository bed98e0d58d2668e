//! Locks on single bytes of a file. A lock tells other processes that its process is alive and at
//! work.
//!
//! The system drops the locks when their process dies, before another process can notice the death
//! by a closed connection. A fork does not inherit them. The system also drops them when the
//! process closes any descriptor of the file, so the file is opened once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::model::error::{Error, Result};

/// A file whose bytes are locked. The content of the bytes does not matter.
pub(super) struct ByteLocks {
    file: File,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    Shared,
    Exclusive,
}

impl ByteLocks {
    pub(super) fn on(file: File) -> Self {
        Self { file }
    }

    /// Locks bytes, and replaces locks of this process on them. Returns false if another process
    /// has a lock in the way.
    pub(super) fn lock(&self, kind: LockKind, bytes: &Range<u64>) -> io::Result<bool> {
        is_taken(control(&self.file, libc::F_SETLK, kind.code(), bytes))
    }

    pub(super) fn unlock(&self, bytes: &Range<u64>) {
        // Unlocking a held lock does not fail. A lock that stayed would end with the process.
        let _ = control(&self.file, libc::F_SETLK, libc::F_UNLCK, bytes);
    }

    /// Returns the end of another process's lock on a byte, or `None` if no other process has a
    /// lock on it.
    pub(super) fn locked_until(&self, byte: u64) -> io::Result<Option<u64>> {
        let found = control(&self.file, libc::F_GETLK, libc::F_WRLCK, &(byte..byte + 1))?;
        if i32::from(found.l_type) == libc::F_UNLCK {
            return Ok(None);
        }
        Ok(Some(match found.l_len {
            0 => u64::MAX,
            length => found.l_start.saturating_add(length).cast_unsigned(),
        }))
    }
}

/// Locks a whole file while it is open, and replaces its lock. Returns false if another open file
/// has a lock in the way. Closing another descriptor of the file keeps the lock.
pub(super) fn lock_open_file(file: &File, kind: LockKind) -> io::Result<bool> {
    is_taken(control(file, libc::F_OFD_SETLK, kind.code(), &(0..1)))
}

fn is_taken(outcome: io::Result<libc::flock>) -> io::Result<bool> {
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn control(
    file: &File,
    command: libc::c_int,
    kind: libc::c_int,
    bytes: &Range<u64>,
) -> io::Result<libc::flock> {
    let offset = |at: u64| libc::off_t::try_from(at).map_err(io::Error::other);
    let mut lock = libc::flock {
        l_type: libc::c_short::try_from(kind).map_err(io::Error::other)?,
        l_whence: libc::c_short::try_from(libc::SEEK_SET).map_err(io::Error::other)?,
        l_start: offset(bytes.start)?,
        l_len: offset(bytes.end - bytes.start)?,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the call reads and writes `lock` only.
    #[expect(unsafe_code, reason = "the standard library locks whole files only")]
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if outcome == 0 { Ok(lock) } else { Err(io::Error::last_os_error()) }
}

impl LockKind {
    fn code(self) -> libc::c_int {
        match self {
            Self::Shared => libc::F_RDLCK,
            Self::Exclusive => libc::F_WRLCK,
        }
    }
}

/// Converts a failure of the locks of the store in `directory` to an error of the engine.
pub(super) fn locked<R>(directory: &Path, outcome: io::Result<R>) -> Result<R> {
    outcome.map_err(|error| Error::io("lock the files of", directory, error))
}
