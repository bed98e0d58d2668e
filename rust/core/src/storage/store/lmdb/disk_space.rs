//! Reserves disk space, and finds out if a disk is full.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::model::error::{Error, Result, is_disk_full};

/// Least bytes by which a file must be able to grow. If it can, a write that LMDB could not finish
/// is not reported as a full disk.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// Returns true if `file` can get longer, as far as the file system and the limits of the process
/// tell.
pub(super) fn can_grow(file: &File) -> bool {
    let Ok(meta) = file.metadata() else { return true };
    let length = meta.len();
    let reserved = reserve(file, libc::FALLOC_FL_KEEP_SIZE, length, ROOM_BYTES_MIN);
    let is_at_limit = length.saturating_add(ROOM_BYTES_MIN) > file_bytes_max();
    !is_at_limit && !reserved.is_err_and(|error| is_disk_full(&error))
}

/// Opens the lock file of an environment and reserves disk space for every byte of it. LMDB leaves
/// holes in the file and writes through a map, which on a full disk would end the process.
///
/// # Errors
/// Returns [`Error::Io`] if the file cannot be opened, and [`Error::DiskFull`] if space is missing.
pub(in crate::storage) fn reserved_lock_file(path: &Path) -> Result<File> {
    let opened = || {
        let file = File::options().read(true).write(true).open(path)?;
        reserve(&file, 0, 0, file.metadata()?.len())?;
        Ok(file)
    };
    opened().map_err(|error| Error::io("reserve space for", path, error))
}

/// Reserves disk space for `bytes` of `file` from `first` on, if the file system can.
fn reserve(file: &File, mode: libc::c_int, first: u64, bytes: u64) -> io::Result<()> {
    let offset = |bytes| libc::off_t::try_from(bytes).map_err(io::Error::other);
    let (first, bytes) = (offset(first)?, offset(bytes)?);
    // SAFETY: the descriptor is open, and the call touches no memory of this program.
    #[expect(unsafe_code, reason = "the standard library cannot reserve space")]
    let reserved = unsafe { libc::fallocate(file.as_raw_fd(), mode, first, bytes) } == 0;
    match io::Error::last_os_error() {
        error if !reserved && error.raw_os_error() != Some(libc::EOPNOTSUPP) => Err(error),
        _ => Ok(()),
    }
}

/// Returns the limit on the size of files for this process. Reserving space does not respect the
/// limit.
fn file_bytes_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call writes to `limit` only.
    #[expect(unsafe_code, reason = "the standard library knows no limits of a process")]
    unsafe {
        libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit)
    };
    limit.rlim_cur
}
