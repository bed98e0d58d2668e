//! The changes that the calls of a piece of work made, and the failure among them that a test asked
//! for.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread::ThreadId;

use super::fault::{DIED, Fault, Others};
use crate::disk::{Change, Node, is_lock};

/// Record of the calls and changes.
#[derive(Clone, Default)]
pub(crate) struct Tape {
    pub(crate) changes: Vec<Change>,
    /// Number of calls that change files, failed calls included.
    pub(crate) calls: u64,
    pub(crate) syncs: u64,
    /// Number of changes that had been made when the first call had to fail or to wait.
    pub(crate) failed_at: Option<usize>,
    /// Content of the file that processes share, before each of the calls. Comes with the number of
    /// changes at that moment.
    pub(crate) shared: Vec<(usize, Vec<u8>)>,
}

/// A recording in progress.
pub(super) struct Recording {
    /// Files and directories by device and number.
    pub(super) nodes: HashMap<(u64, u64), Node>,
    /// The node that was made last.
    pub(super) last: Node,
    pub(super) tape: Tape,
    pub(super) fault: Fault,
    pub(super) thread: ThreadId,
    /// Path of the file that processes share, if its content is kept as well.
    pub(super) shared: Option<PathBuf>,
}

impl Recording {
    /// Adopts a new file or directory, except LMDB's lock file, which does not outlive a machine.
    pub(super) fn adopt(&mut self, name: &str, meta: &Metadata) -> Option<Node> {
        if is_lock(name) {
            return None;
        }
        self.last += 1;
        self.nodes.insert(inode(meta), self.last);
        Some(self.last)
    }

    /// Returns true if the disk was full for the last call. Asking changes no file, so it does not
    /// count as a call.
    pub(super) fn is_full(&self) -> bool {
        let last = self.tape.calls.saturating_sub(1);
        matches!(&self.fault, Fault::Full { calls } if calls.contains(&last))
    }

    /// Returns true if the last call must be made in part.
    pub(super) fn is_torn(&self) -> bool {
        let last = self.tape.calls.saturating_sub(1);
        matches!(self.fault, Fault::Torn { call } | Fault::Short { call } if call == last)
    }

    /// Ends or stops the process if the call of its fault was made. Called after that call, or at
    /// the latest by the next call.
    pub(super) fn live_on(&self) {
        if matches!(self.fault, Fault::Death { call } if self.tape.calls > call) {
            // SAFETY: the call ends the process, and no destructor runs.
            unsafe { libc::_exit(DIED) }
        }
        if matches!(self.fault, Fault::Stop { call } | Fault::Torn { call } if self.tape.calls > call)
        {
            // SAFETY: the signal has no handler, and stops the process.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
    }

    /// Counts a call. Returns the error that the call must fail with, if any, and the other threads
    /// that it must wait for.
    pub(super) fn refuse(&mut self, takes_space: bool) -> (Option<c_int>, Option<Others>) {
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
            // The wait comes behind the failed sync.
            Fault::Pause { call, errno: Some(errno), .. } if *call == number && self.is_own() => {
                return (Some(*errno), None);
            }
            _ => return (None, self.waits_for(false)),
        };
        self.tape.failed_at.get_or_insert(self.tape.changes.len());
        (Some(errno), None)
    }

    /// Counts a sync. Returns the error that the sync must fail with, if any.
    pub(super) fn refuse_sync(&mut self) -> Option<c_int> {
        let number = self.tape.syncs;
        self.tape.syncs += 1;
        let Fault::Syncs { syncs, errno } = &self.fault else { return None };
        let errno = Some(*errno).filter(|_| syncs.contains(&number));
        if errno.is_some() {
            self.tape.failed_at.get_or_insert(self.tape.changes.len());
        }
        errno
    }

    /// Returns true in the thread that began the recording.
    fn is_own(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Returns the other threads that the last call must wait for.
    pub(super) fn waits_for(&mut self, is_made: bool) -> Option<Others> {
        let last = self.tape.calls - 1;
        let others = match &self.fault {
            Fault::Pause { call, is_after, others, .. }
                if (*call, *is_after) == (last, is_made) =>
            {
                others.clone()
            }
            _ => return None,
        };
        if !self.is_own() {
            return None;
        }
        self.fault = Fault::None;
        self.tape.failed_at.get_or_insert(self.tape.changes.len());
        Some(others)
    }
}

/// Returns device and number of a file.
pub(super) fn inode(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}
