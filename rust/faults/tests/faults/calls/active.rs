//! Recordings in progress. A recording is found by the files of a call, or by the thread that began
//! it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_int;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::{Fault, Others};
use super::recording::{Recording, Tape, inode};
use crate::disk::{Change, Disk, Node};

/// A recording, shared by the threads that work on the recorded files.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Mutex<Recording>>);

static ACTIVE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

thread_local! {
    /// The recording that this thread has begun or joined.
    static OWN: RefCell<Option<Handle>> = const { RefCell::new(None) };
    /// True while a call looks for its recording. Calls made by this search do not belong to the
    /// store.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

impl Handle {
    pub(super) fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this recording the recording of this thread, so that the thread can ask for positions.
    pub(crate) fn join(&self) {
        OWN.set(Some(self.clone()));
    }

    /// Makes this thread wait before or after `call`, counted from now on.
    pub(crate) fn pause(&self, call: u64, is_after: bool, others: Others) {
        let mut recording = self.lock();
        let call = recording.tape.calls + call;
        recording.fault = Fault::Pause { call, is_after, others, errno: None };
    }

    /// Makes the next call of this thread, a sync, fail. The thread waits before it learns of that.
    pub(crate) fn fail_sync(&self, others: Others) {
        let mut recording = self.lock();
        let (call, errno) = (recording.tape.calls, Some(libc::EIO));
        recording.fault = Fault::Pause { call, is_after: true, others, errno };
    }

    /// Keeps the content of the shared file at `path` from now on.
    pub(crate) fn keep_shared(&self, path: &Path) {
        self.lock().shared = Some(path.to_owned());
    }

    /// Counts a call. Returns the error that the call must fail with, if any.
    pub(super) fn refuse(&self, takes_space: bool) -> Option<c_int> {
        let (refused, waits) = self.lock().refuse(takes_space);
        if let Some(Others(others)) = waits {
            others();
        }
        refused
    }

    /// Records a change that was made.
    pub(super) fn push(&self, change: Change) {
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

/// Begins to record the calls for files below `root`. Returns the disk as it is now.
pub(crate) fn record(root: &Path, fault: Fault) -> Disk {
    stop();
    let mut disk = Disk::new();
    let nodes = HashMap::from([(inode(&root.metadata().unwrap()), 0)]);
    let thread = std::thread::current().id();
    let mut recording =
        Recording { nodes, last: 0, tape: Tape::default(), fault, thread, shared: None };
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

/// Returns the recording of this thread.
pub(crate) fn handle() -> Option<Handle> {
    OWN.with_borrow(Clone::clone)
}

/// Ends the recording of this thread.
pub(crate) fn stop() -> Tape {
    let Some(own) = OWN.take() else { return Tape::default() };
    active().retain(|other| !Arc::ptr_eq(&own.0, &other.0));
    std::mem::take(&mut own.lock().tape)
}

/// Returns the number of changes recorded so far.
pub(crate) fn position() -> usize {
    handle().map(|own| own.lock().tape.changes.len()).unwrap_or_default()
}

fn active() -> MutexGuard<'static, Vec<Handle>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the recording for which `find` returns a value.
fn find<R>(find: impl Fn(&Recording) -> Option<R>) -> Option<(Handle, R)> {
    if IS_BUSY.try_with(|is_busy| is_busy.replace(true)) != Ok(false) {
        return None;
    }
    let found = active().iter().find_map(|handle| Some((handle.clone(), find(&handle.lock())?)));
    IS_BUSY.set(false);
    found
}

/// Returns the recorded file that is open as `fd`.
pub(super) fn find_file(fd: c_int) -> Option<(Handle, Node)> {
    if active().is_empty() {
        return None;
    }
    // SAFETY: an all-zero `stat` is valid, and the call fills it or fails.
    let (outcome, meta) = unsafe {
        let mut meta: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut meta), meta)
    };
    let file = (meta.st_dev, meta.st_ino);
    find(|recording| recording.nodes.get(&file).copied().filter(|_| outcome == 0))
}

/// Returns the directory of a path, and the name in the directory.
pub(super) fn find_entry(path: &Path) -> Option<(Handle, (Node, String))> {
    if active().is_empty() {
        return None;
    }
    let directory = inode(&path.parent()?.metadata().ok()?);
    let name = path.file_name()?.to_str()?.to_owned();
    let (handle, node) = find(|recording| recording.nodes.get(&directory).copied())?;
    Some((handle, (node, name)))
}
