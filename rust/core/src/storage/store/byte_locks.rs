//! Locks on single bytes of a file, which tell other processes that this one is alive and at work.
//!
//! The system drops them when their process dies, before anybody can learn of the death by a closed
//! connection, and a fork does not inherit them. It drops them as well as soon as the process closes
//! any descriptor of the file, so the file is opened once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::model::error::{Error, Result};

/// A file whose bytes are locked; what is in them has nothing to do with it.
pub(super) struct ByteLocks {
    file: File,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Shared,
    Exclusive,
}

impl ByteLocks {
    pub(super) fn on(file: File) -> Self {
        Self { file }
    }

    /// Locks bytes, in place of what this process has locked of them; false where another process
    /// is in the way.
    pub(super) fn lock(&self, kind: Kind, bytes: &Range<u64>) -> io::Result<bool> {
        is_taken(control(&self.file, libc::F_SETLK, kind.code(), bytes))
    }

    pub(super) fn unlock(&self, bytes: &Range<u64>) {
        // Giving up a lock that is held does not fail; one that stayed would go with the process.
        let _ = control(&self.file, libc::F_SETLK, libc::F_UNLCK, bytes);
    }

    /// The end of a lock that another process has on a byte, if one has.
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

/// Locks all of a file for as long as it is open, in place of what was locked of it; false where
/// another open file is in the way. Closing another descriptor does not give it up.
pub(super) fn lock_open_file(file: &File, kind: Kind) -> io::Result<bool> {
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
    // SAFETY: the descriptor is open, and the call reads and writes `lock` and nothing else.
    #[expect(unsafe_code, reason = "the standard library locks whole files only")]
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if outcome == 0 { Ok(lock) } else { Err(io::Error::last_os_error()) }
}

impl Kind {
    fn code(self) -> libc::c_int {
        match self {
            Self::Shared => libc::F_RDLCK,
            Self::Exclusive => libc::F_WRLCK,
        }
    }
}

/// Passes on an outcome of the locks of the store in `directory`.
pub(super) fn locked<R>(directory: &Path, outcome: io::Result<R>) -> Result<R> {
    outcome.map_err(|error| Error::io("lock the files of", directory, error))
}
