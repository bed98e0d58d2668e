//! The calls by which this program changes files, taken over from the C library.
//!
//! The linker prefers a program's own functions to those of a shared library, so whatever this test
//! program does to files, the standard library and LMDB included, comes through here. Calls for files
//! below a directory that is recorded are written down, whichever thread makes them, and may be made
//! to fail; all others pass. Real syncs are left out: only the simulated disk knows what they are
//! worth.
#![expect(unsafe_code, reason = "these are functions of the C library")]
#![expect(clippy::cast_possible_truncation, reason = "what a system call returns fits")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use super::disk::{Change, Disk, Node};
use super::sites;

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
    /// This call, if it is a write, is made in part, and the next one finds no space.
    Short { call: u64 },
    /// These syncs, counted by themselves.
    Syncs { syncs: Range<u64>, errno: c_int },
    /// Nothing fails, and the thread that records waits before it makes this call, or once it has
    /// made it, until `others` have done what they can meanwhile.
    Pause { call: u64, is_after: bool, others: Others },
}

/// Work of other threads.
#[derive(Clone)]
pub(crate) struct Others(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Others {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Others")
    }
}

/// Exit code of a process that died.
pub(crate) const DIED: i32 = 86;
/// Exit code of a process one of whose calls failed.
pub(crate) const FAILED: i32 = 87;

/// Record of what was done.
#[derive(Clone, Default)]
pub(crate) struct Tape {
    pub(crate) changes: Vec<Change>,
    /// Calls that change files, those that failed included.
    pub(crate) calls: u64,
    pub(crate) syncs: u64,
    /// Number of changes that had been made when the first call was made to fail, or to wait.
    pub(crate) failed_at: Option<usize>,
    /// Content of the file that processes share before each of the calls, and how many changes had
    /// been made by then.
    pub(crate) shared: Vec<(usize, Vec<u8>)>,
}

struct Recording {
    nodes: HashMap<(u64, u64), Node>,
    made: Node,
    tape: Tape,
    fault: Fault,
    thread: ThreadId,
    /// The file that processes share, where it is kept as well.
    shared: Option<PathBuf>,
}

/// Something that is recorded.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Mutex<Recording>>);

static ACTIVE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

thread_local! {
    /// The one that this thread has begun or joined.
    static OWN: RefCell<Option<Handle>> = const { RefCell::new(None) };
    /// True while a call looks for its recording: what it calls is none of the store's.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets this thread ask for positions in this recording.
    pub(crate) fn join(&self) {
        OWN.set(Some(self.clone()));
    }

    /// Lets this thread wait before or after `call`, counted from now on.
    pub(crate) fn pause(&self, call: u64, is_after: bool, others: Others) {
        let mut recording = self.lock();
        let call = recording.tape.calls + call;
        recording.fault = Fault::Pause { call, is_after, others };
    }

    /// Keeps what is in the shared file at `path` from now on.
    pub(crate) fn keep_shared(&self, path: &Path) {
        self.lock().shared = Some(path.to_owned());
    }

    /// Counts a call; the error it is to fail with, if any.
    fn refuse(&self, takes_space: bool) -> Option<c_int> {
        let (refused, waits) = self.lock().refuse(takes_space);
        if let Some(Others(others)) = waits {
            others();
        }
        refused
    }

    fn push(&self, change: Change) {
        let waits = {
            let mut recording = self.lock();
            recording.tape.changes.push(change);
            recording.waits_for(true)
        };
        if let Some(Others(others)) = waits {
            others();
        }
    }
}

/// Begins to record what is done below `root`; returns the disk as it is now.
pub(crate) fn record(root: &Path, fault: Fault) -> Disk {
    stop();
    let mut disk = Disk::new();
    let nodes = HashMap::from([(inode(&root.metadata().unwrap()), 0)]);
    let thread = std::thread::current().id();
    let mut recording =
        Recording { nodes, made: 0, tape: Tape::default(), fault, thread, shared: None };
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
    let handle = Handle(Arc::new(Mutex::new(recording)));
    active().push(handle.clone());
    handle.join();
    disk
}

/// The recording of this thread.
pub(crate) fn handle() -> Option<Handle> {
    OWN.with_borrow(Clone::clone)
}

/// Ends the recording of this thread.
pub(crate) fn stop() -> Tape {
    let Some(own) = OWN.take() else { return Tape::default() };
    active().retain(|other| !Arc::ptr_eq(&own.0, &other.0));
    std::mem::take(&mut own.lock().tape)
}

/// Changes recorded so far.
pub(crate) fn position() -> usize {
    handle().map(|own| own.lock().tape.changes.len()).unwrap_or_default()
}

fn active() -> MutexGuard<'static, Vec<Handle>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recording in which `find` finds something.
fn find<R>(find: impl Fn(&Recording) -> Option<R>) -> Option<(Handle, R)> {
    if IS_BUSY.try_with(|is_busy| is_busy.replace(true)) != Ok(false) {
        return None;
    }
    let found = active().iter().find_map(|handle| Some((handle.clone(), find(&handle.lock())?)));
    IS_BUSY.set(false);
    found
}

fn find_file(fd: c_int) -> Option<(Handle, Node)> {
    if active().is_empty() {
        return None;
    }
    // SAFETY: an all-zero `stat` is one, and the call fills it or fails.
    let (outcome, meta) = unsafe {
        let mut meta: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut meta), meta)
    };
    let file = (meta.st_dev, meta.st_ino);
    find(|recording| recording.nodes.get(&file).copied().filter(|_| outcome == 0))
}

/// The directory of a path, and the name in it.
fn find_entry(path: &Path) -> Option<(Handle, (Node, String))> {
    if active().is_empty() {
        return None;
    }
    let directory = inode(&path.parent()?.metadata().ok()?);
    let name = path.file_name()?.to_str()?.to_owned();
    let (handle, node) = find(|recording| recording.nodes.get(&directory).copied())?;
    Some((handle, (node, name)))
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

    /// True where the disk was full for the last call. Asking changes nothing, so it does not count.
    fn is_full(&self) -> bool {
        let last = self.tape.calls.saturating_sub(1);
        matches!(&self.fault, Fault::Full { calls } if calls.contains(&last))
    }

    /// True where the last call is to be made in part.
    fn is_torn(&self) -> bool {
        let last = self.tape.calls.saturating_sub(1);
        matches!(self.fault, Fault::Torn { call } | Fault::Short { call } if call == last)
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

    /// Counts a call; the error it is to fail with, if any, and whom it has to wait for.
    fn refuse(&mut self, takes_space: bool) -> (Option<c_int>, Option<Others>) {
        self.live_on();
        let number = self.tape.calls;
        self.tape.calls += 1;
        if let Some(path) = &self.shared {
            let content = std::fs::read(path).unwrap_or_default();
            self.tape.shared.push((self.tape.changes.len(), content));
        }
        let errno = match &self.fault {
            Fault::Calls { calls, errno } if calls.contains(&number) => *errno,
            Fault::Full { calls } if takes_space && calls.contains(&number) => libc::ENOSPC,
            Fault::Short { call } if *call + 1 == number => libc::ENOSPC,
            _ => return (None, self.waits_for(false)),
        };
        self.tape.failed_at.get_or_insert(self.tape.changes.len());
        (Some(errno), None)
    }

    /// Counts a sync; the error it is to fail with, if any.
    fn refuse_sync(&mut self) -> Option<c_int> {
        let number = self.tape.syncs;
        self.tape.syncs += 1;
        let Fault::Syncs { syncs, errno } = &self.fault else { return None };
        let errno = Some(*errno).filter(|_| syncs.contains(&number));
        if errno.is_some() {
            self.tape.failed_at.get_or_insert(self.tape.changes.len());
        }
        errno
    }

    /// Whom the call made last has to wait for.
    fn waits_for(&mut self, is_made: bool) -> Option<Others> {
        let last = self.tape.calls - 1;
        let others = match &self.fault {
            Fault::Pause { call, is_after, others } if (*call, *is_after) == (last, is_made) => {
                others.clone()
            }
            _ => return None,
        };
        if std::thread::current().id() != self.thread {
            return None;
        }
        self.fault = Fault::None;
        self.tape.failed_at.get_or_insert(self.tape.changes.len());
        Some(others)
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
    let entry = || if flags & libc::O_CREAT == 0 { None } else { find_entry(&name) };
    let entry = entry().filter(|(_, (_, file))| !file.ends_with("-lock"));
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
            let made = Change::Make { directory, name: file_name, node, is_directory: false };
            recording.push(made);
        }
    } else if flags & libc::O_TRUNC != 0
        && let Some((_, file)) = find_file(fd)
    {
        recording.push(Change::Resize { file, length: 0 });
    }
    fd
}

/// `real` writes as many of `bytes` at `at` as it is given.
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
    // LMDB tells other processes of a commit after the write of its head page.
    recording.lock().live_on();
    let written_bytes = Some(at..at + kept as u64).filter(|_| flags & libc::O_DSYNC != 0);
    if written_bytes.is_some() && sync_file(fd, written_bytes) != 0 { -1 } else { written }
}

/// Syncs all of a file, or the bytes of a write.
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
