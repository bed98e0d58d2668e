//! The calls by which this program changes files, taken over from the C library.
//!
//! The linker prefers a program's own functions to those of a shared library, so whatever this test
//! program does to files, the standard library and LMDB included, comes through here. On a thread
//! that records, calls for files below its directory are written down, and may be made to fail; all
//! others pass. Real syncs are left out: only the simulated disk knows what they are worth.
#![expect(unsafe_code, reason = "these are functions of the C library")]
#![expect(clippy::cast_possible_truncation, reason = "what a system call returns fits")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use super::disk::{Change, Disk, Node};

/// Failures that are wanted. Calls are counted from 0.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// These calls.
    Calls { calls: Range<u64>, errno: c_int },
    /// Whatever takes space during these calls; a write that fits in part is cut short.
    Full { calls: Range<u64> },
    /// Nothing fails, and the process dies as soon as it has made this call.
    Death { call: u64 },
    /// Nothing fails, and the process stops as soon as it has made this call, to be killed so.
    Stop { call: u64 },
    /// As [`Self::Stop`]; if the call is a write, it is made in part.
    Torn { call: u64 },
}

/// Exit code of a process that died.
pub(crate) const DIED: i32 = 86;

/// Record of what a thread did.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) changes: Vec<Change>,
    /// Calls that change files, those that failed included.
    pub(crate) calls: u64,
    /// Number of changes that had been made when the first call was made to fail.
    pub(crate) failed_at: Option<usize>,
}

struct Recording {
    nodes: HashMap<(u64, u64), Node>,
    made: Node,
    tape: Tape,
    fault: Fault,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Begins to record what this thread does below `root`; returns the disk as it is now.
pub(crate) fn record(root: &Path, fault: Fault) -> Disk {
    let mut disk = Disk::new();
    let nodes = HashMap::from([(inode(&root.metadata().unwrap()), 0)]);
    let mut recording = Recording { nodes, made: 0, tape: Tape::default(), fault };
    let mut directories = vec![(0, root.to_owned())];
    while let Some((directory, path)) = directories.pop() {
        for entry in path.read_dir().unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let meta = entry.metadata().unwrap();
            let Some(node) = recording.adopt(&name, &meta) else { continue };
            let bytes = meta.is_file().then(|| std::fs::read(entry.path()).unwrap());
            if meta.is_dir() {
                directories.push((node, entry.path()));
            }
            disk.put(directory, &name, node, bytes);
        }
    }
    RECORDING.set(Some(recording));
    disk
}

/// Ends recording.
pub(crate) fn stop() -> Tape {
    RECORDING.take().map(|recording| recording.tape).unwrap_or_default()
}

/// Changes recorded so far.
pub(crate) fn position() -> usize {
    with(|recording| recording.tape.changes.len()).unwrap_or_default()
}

fn with<R>(work: impl FnOnce(&mut Recording) -> R) -> Option<R> {
    let borrowed = RECORDING.try_with(|recording| {
        let mut recording = recording.try_borrow_mut().ok()?;
        recording.as_mut().map(work)
    });
    borrowed.ok().flatten()
}

fn inode(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Recording {
    /// Takes a new file or directory on, but for LMDB's lock file: that outlives no machine.
    fn adopt(&mut self, name: &str, meta: &Metadata) -> Option<Node> {
        if name.ends_with("-lock") {
            return None;
        }
        self.made += 1;
        self.nodes.insert(inode(meta), self.made);
        Some(self.made)
    }

    fn node_of(&self, fd: c_int) -> Option<Node> {
        // SAFETY: an all-zero `stat` is one, and the call fills it or fails.
        let (outcome, meta) = unsafe {
            let mut meta: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut meta), meta)
        };
        if outcome == 0 { self.nodes.get(&(meta.st_dev, meta.st_ino)).copied() } else { None }
    }

    /// The directory of a path, and the name in it.
    fn entry_of(&self, path: &Path) -> Option<(Node, String)> {
        let directory = path.parent()?.metadata().ok()?;
        let name = path.file_name()?.to_str()?.to_owned();
        Some((*self.nodes.get(&inode(&directory))?, name))
    }

    /// True where the disk was full for the last call. Asking changes nothing, so it does not count.
    fn is_full(&self) -> bool {
        let last = self.tape.calls.saturating_sub(1);
        matches!(&self.fault, Fault::Full { calls } if calls.contains(&last))
    }

    /// Ends or stops the process where the call of its fault has been made, at the latest by the next.
    fn live_on(&self) {
        if matches!(self.fault, Fault::Death { call } if self.tape.calls > call) {
            // SAFETY: it ends the process, and no destructor runs.
            unsafe { libc::_exit(DIED) }
        }
        if matches!(self.fault, Fault::Stop { call } | Fault::Torn { call } if self.tape.calls > call)
        {
            // SAFETY: the signal has no handler; it stops the process.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
    }

    /// Counts a call; the error it is to fail with, if any.
    fn refuse(&mut self, takes_space: bool) -> Option<c_int> {
        self.live_on();
        let number = self.tape.calls;
        self.tape.calls += 1;
        let errno = match &self.fault {
            Fault::Calls { calls, errno } if calls.contains(&number) => *errno,
            Fault::Full { calls } if takes_space && calls.contains(&number) => libc::ENOSPC,
            _ => return None,
        };
        self.tape.failed_at.get_or_insert(self.tape.changes.len());
        Some(errno)
    }
}

/// Fails with `errno`.
fn fail(errno: c_int) -> c_int {
    // SAFETY: the address is this thread's own.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// A path that a caller handed over.
///
/// # Safety
/// `path` is a C string.
unsafe fn path_of(path: *const c_char) -> PathBuf {
    // SAFETY: the caller's promise.
    OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()).into()
}

/// # Safety
/// Those of `open(2)`.
unsafe fn open_file(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise.
    let (name, real) = unsafe {
        (path_of(path), || {
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int
        })
    };
    let entry = || if flags & libc::O_CREAT == 0 { None } else { with(|r| r.entry_of(&name))? };
    let Some((directory, file_name)) = entry().filter(|(_, file)| !file.ends_with("-lock")) else {
        return real();
    };
    let is_new = name.symlink_metadata().is_err();
    if let Some(errno) = with(|recording| recording.refuse(is_new)).flatten() {
        return fail(errno);
    }
    let fd = real();
    let Ok(meta) = name.metadata() else { return fd };
    with(|recording| {
        if is_new && let Some(node) = recording.adopt(&file_name, &meta) {
            let made = Change::Make { directory, name: file_name, node, is_directory: false };
            recording.tape.changes.push(made);
        } else if flags & libc::O_TRUNC != 0
            && let Some(file) = recording.node_of(fd)
        {
            recording.tape.changes.push(Change::Resize { file, length: 0 });
        }
    });
    fd
}

/// `real` writes as many of `bytes` at `at` as it is given.
fn write_file(fd: c_int, at: Option<u64>, bytes: &[u8], real: impl Fn(usize) -> isize) -> isize {
    let Some(file) = with(|recording| recording.node_of(fd)).flatten() else {
        return real(bytes.len());
    };
    // SAFETY: these calls touch no memory.
    let (at, end, flags) = unsafe {
        let here = libc::lseek(fd, 0, libc::SEEK_CUR);
        let end = libc::lseek(fd, 0, libc::SEEK_END);
        libc::lseek(fd, here, libc::SEEK_SET);
        (at.unwrap_or(here.cast_unsigned()), end.cast_unsigned(), libc::fcntl(fd, libc::F_GETFL))
    };
    let takes_space = at + bytes.len() as u64 > end;
    let mut count = bytes.len();
    if let Some(errno) = with(|recording| recording.refuse(takes_space)).flatten() {
        let fits = usize::try_from(end.saturating_sub(at)).unwrap_or(0);
        let is_full = with(|recording| matches!(recording.fault, Fault::Full { .. }));
        if fits == 0 || is_full != Some(true) {
            return fail(errno) as isize;
        }
        count = fits;
    }
    let is_torn = |recording: &mut Recording| {
        let last = recording.tape.calls.saturating_sub(1);
        matches!(recording.fault, Fault::Torn { call } if call == last)
    };
    if with(is_torn) == Some(true) {
        count /= 2;
    }
    let written = real(count);
    let Ok(kept) = usize::try_from(written) else { return written };
    with(|recording| {
        recording.tape.changes.push(Change::Write { file, at, bytes: bytes[..kept].to_vec() });
        // LMDB tells other processes of a commit after the write of its head page.
        recording.live_on();
    });
    if flags & libc::O_DSYNC != 0 && sync_file(fd) != 0 { -1 } else { written }
}

fn sync_file(fd: c_int) -> c_int {
    let refused = with(|recording| {
        let node = recording.node_of(fd)?;
        let errno = recording.refuse(false);
        let change =
            if errno.is_some() { Change::SyncFailed { node } } else { Change::Sync { node } };
        recording.tape.changes.push(change);
        errno
    });
    refused.flatten().map_or(0, fail)
}

/// # Safety
/// `from` is readable for `count` bytes.
unsafe fn bytes_of<'a>(from: *const c_void, count: size_t) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(from.cast(), count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's promise; where `mode` was not passed, it is not used.
    unsafe { open_file(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as above.
    unsafe { open_file(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, from: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    write_file(fd, None, bytes, |count| {
        // SAFETY: no more than `bytes` has.
        unsafe { libc::syscall(libc::SYS_write, fd, from, count) as isize }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, count: size_t, at: off_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes_of(from, count) };
    write_file(fd, Some(at.cast_unsigned()), bytes, |count| {
        // SAFETY: no more than `bytes` has.
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
    // SAFETY: the same.
    let part = |part: &iovec| unsafe { bytes_of(part.iov_base, part.iov_len) };
    let bytes = parts.iter().map(part).collect::<Vec<_>>().concat();
    write_file(fd, None, &bytes, |count| {
        // SAFETY: no more than `bytes` has.
        unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), count) as isize }
    })
}

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    sync_file(fd)
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync_file(fd)
}

fn truncate_file(fd: c_int, length: off_t) -> c_int {
    // SAFETY: the call touches no memory.
    let real = || unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) as c_int };
    let Some(file) = with(|recording| recording.node_of(fd)).flatten() else { return real() };
    if let Some(errno) = with(|recording| recording.refuse(false)).flatten() {
        return fail(errno);
    }
    let length = length.cast_unsigned();
    with(|recording| recording.tape.changes.push(Change::Resize { file, length }));
    real()
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
    let is_ours = with(|recording| recording.node_of(fd)).flatten().is_some();
    if is_ours && with(|recording| recording.is_full()) == Some(true) {
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
    let entry = with(|recording| recording.entry_of(&path)).flatten();
    let Some((directory, name)) = entry.filter(|_| path.symlink_metadata().is_err()) else {
        return real();
    };
    if let Some(errno) = with(|recording| recording.refuse(true)).flatten() {
        return fail(errno);
    }
    let outcome = real();
    let Ok(meta) = path.metadata() else { return outcome };
    with(|recording| {
        if let Some(node) = recording.adopt(&name, &meta) {
            recording.tape.changes.push(Change::Make { directory, name, node, is_directory: true });
        }
    });
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
    let entries = with(|recording| Some((recording.entry_of(&old)?, recording.entry_of(&new)?)));
    let Some(((directory, from), (into, to))) = entries.flatten() else { return real() };
    assert_eq!(directory, into, "the store renames within a directory");
    if let Some(errno) = with(|recording| recording.refuse(false)).flatten() {
        return fail(errno);
    }
    with(|recording| recording.tape.changes.push(Change::Rename { directory, from, to }));
    real()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let (path, real) = unsafe {
        (path_of(path), || libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0) as c_int)
    };
    let Some((directory, name)) = with(|recording| recording.entry_of(&path)).flatten() else {
        return real();
    };
    let Ok(meta) = path.symlink_metadata() else { return real() };
    if let Some(errno) = with(|recording| recording.refuse(false)).flatten() {
        return fail(errno);
    }
    with(|recording| {
        if recording.nodes.remove(&inode(&meta)).is_some() {
            recording.tape.changes.push(Change::Remove { directory, name });
        }
    });
    real()
}
