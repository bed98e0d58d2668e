//! Replacements of the C library's functions that change files. A function makes its change by a
//! system call and records it, unless the call must fail.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use super::active::{find_entry, find_file};
use super::fault::Fault;
use super::recording::inode;
use crate::disk::{Change, is_lock};
use crate::sites;

/// Fails with `errno`.
fn fail(errno: c_int) -> c_int {
    // SAFETY: the address belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// Returns the path that a caller passed.
///
/// # Safety
/// `path` is a C string.
unsafe fn path_of(path: *const c_char) -> PathBuf {
    // SAFETY: the caller's promise.
    OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()).into()
}

/// # Safety
/// The conditions of `open(2)` hold.
unsafe fn open_file(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    let (name, real) = unsafe {
        (path_of(path), || {
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int
        })
    };
    let entry = || if flags & libc::O_CREAT == 0 { None } else { find_entry(&name) };
    let entry = entry().filter(|(_, (_, file))| !is_lock(file));
    let Some((recording, (directory, file_name))) = entry else { return real() };
    let is_new = name.symlink_metadata().is_err();
    if let Some(errno) = recording.refuse(is_new) {
        return fail(errno);
    }
    let fd = real();
    let Ok(meta) = name.metadata() else { return fd };
    if is_new {
        let node = recording.lock().adopt(&file_name, &meta);
        if let Some(node) = node {
            let change = Change::Make { directory, name: file_name, node, is_directory: false };
            recording.push(change);
        }
    } else if flags & libc::O_TRUNC != 0
        && let Some((_, file)) = find_file(fd)
    {
        recording.push(Change::Resize { file, length: 0 });
    }
    fd
}

/// Writes a part of `bytes` at `at`. `real` gets the number of bytes to write, and writes them.
fn write_file(fd: c_int, at: Option<u64>, bytes: &[u8], real: impl Fn(usize) -> isize) -> isize {
    let Some((recording, file)) = find_file(fd) else { return real(bytes.len()) };
    // SAFETY: these calls touch no memory.
    let (at, end, flags) = unsafe {
        let here = libc::lseek(fd, 0, libc::SEEK_CUR);
        let end = libc::lseek(fd, 0, libc::SEEK_END);
        libc::lseek(fd, here, libc::SEEK_SET);
        (at.unwrap_or(here.cast_unsigned()), end.cast_unsigned(), libc::fcntl(fd, libc::F_GETFL))
    };
    let takes_space = at + bytes.len() as u64 > end;
    let mut count = bytes.len();
    if let Some(errno) = recording.refuse(takes_space) {
        let fits = usize::try_from(end.saturating_sub(at)).unwrap_or(0);
        if fits == 0 || !matches!(recording.lock().fault, Fault::Full { .. }) {
            return fail(errno) as isize;
        }
        count = fits;
    }
    if recording.lock().is_torn() {
        count /= 2;
    }
    let written = real(count);
    let Ok(kept) = usize::try_from(written) else { return written };
    recording.push(Change::Write { file, at, bytes: bytes[..kept].into() });
    // LMDB announces a commit to other processes after the write of its head page.
    recording.lock().live_on();
    let written_bytes = Some(at..at + kept as u64).filter(|_| flags & libc::O_DSYNC != 0);
    if written_bytes.is_some() && sync_file(fd, written_bytes) != 0 { -1 } else { written }
}

/// Syncs a whole file, or the bytes of a write.
fn sync_file(fd: c_int, bytes: Option<Range<u64>>) -> c_int {
    let site = sites::here();
    let Some((recording, node)) = find_file(fd) else { return 0 };
    let errno = recording.refuse(false).or_else(|| recording.lock().refuse_sync());
    let change = match errno {
        Some(_) => Change::SyncFailed { node },
        None => Change::Sync { node, site, bytes },
    };
    recording.push(change);
    errno.map_or(0, fail)
}

/// # Safety
/// `from` is readable for `count` bytes.
unsafe fn bytes_of<'a>(from: *const c_void, count: size_t) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(from.cast(), count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise. If `mode` was not passed, it is not used.
    unsafe { open_file(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as for `open`.
    unsafe { open_file(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, from: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    write_file(fd, None, bytes, |count| {
        // SAFETY: the call reads no more than `bytes` has.
        unsafe { libc::syscall(libc::SYS_write, fd, from, count) as isize }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, count: size_t, at: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    write_file(fd, Some(at.cast_unsigned()), bytes, |count| {
        // SAFETY: the call reads no more than `bytes` has.
        unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, count, at) as isize }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, count: size_t, at: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { pwrite(fd, from, count, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    let parts = unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).unwrap()) };
    // SAFETY: the caller's promise.
    let part = |part: &iovec| unsafe { bytes_of(part.iov_base, part.iov_len) };
    let bytes = parts.iter().map(part).collect::<Vec<_>>().concat();
    write_file(fd, None, &bytes, |count| {
        // SAFETY: the call reads no more than `bytes` has.
        unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), count) as isize }
    })
}

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    sync_file(fd, None)
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync_file(fd, None)
}

fn truncate_file(fd: c_int, length: off_t) -> c_int {
    // SAFETY: the call touches no memory.
    let real = || unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) as c_int };
    let Some((recording, file)) = find_file(fd) else { return real() };
    if let Some(errno) = recording.refuse(false) {
        return fail(errno);
    }
    let outcome = real();
    recording.push(Change::Resize { file, length: length.cast_unsigned() });
    outcome
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    truncate_file(fd, length)
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    truncate_file(fd, length)
}

#[unsafe(no_mangle)]
extern "C" fn fallocate(fd: c_int, mode: c_int, at: off_t, length: off_t) -> c_int {
    if find_file(fd).is_some_and(|(recording, _)| recording.lock().is_full()) {
        return fail(libc::ENOSPC);
    }
    // SAFETY: the call touches no memory.
    unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, at, length) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    let (path, real) = unsafe {
        (path_of(path), || libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path, mode) as c_int)
    };
    let entry = find_entry(&path).filter(|_| path.symlink_metadata().is_err());
    let Some((recording, (directory, name))) = entry else { return real() };
    if let Some(errno) = recording.refuse(true) {
        return fail(errno);
    }
    let outcome = real();
    let Ok(meta) = path.metadata() else { return outcome };
    let node = recording.lock().adopt(&name, &meta);
    if let Some(node) = node {
        recording.push(Change::Make { directory, name, node, is_directory: true });
    }
    outcome
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let cwd = libc::AT_FDCWD;
    // SAFETY: the caller's promise.
    let (old, new, real) = unsafe {
        (path_of(from), path_of(to), || {
            libc::syscall(libc::SYS_renameat2, cwd, from, cwd, to, 0) as c_int
        })
    };
    let entries = || Some((find_entry(&old)?, find_entry(&new)?.1));
    let Some(((recording, (directory, from)), (into, to))) = entries() else { return real() };
    assert_eq!(directory, into, "the store renames within a directory");
    if let Some(errno) = recording.refuse(false) {
        return fail(errno);
    }
    let outcome = real();
    recording.push(Change::Rename { directory, from, to });
    outcome
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let (path, real) = unsafe {
        (path_of(path), || libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0) as c_int)
    };
    let Some((recording, (directory, name))) = find_entry(&path) else { return real() };
    let Ok(meta) = path.symlink_metadata() else { return real() };
    if let Some(errno) = recording.refuse(false) {
        return fail(errno);
    }
    let outcome = real();
    if recording.lock().nodes.remove(&inode(&meta)).is_some() {
        recording.push(Change::Remove { directory, name });
    }
    outcome
}
