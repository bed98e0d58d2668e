//! Marks of the frames being written, and of the processes that have the log open.
//!
//! Readers see durable frames. If the file has frames that are not durable, a reader checks the
//! marks for a living writer. It completes or discards the frames of a dead writer before it
//! answers.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::storage::store::byte_locks::{ByteLocks, LockKind, lock_open_file};

/// Offset of the mark of position 0: far beyond the marks of transactions.
const MARKS_AT: u64 = 1 << 62;
/// Time until a waiting process looks again if the process that opens the log alone is done.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Waits until no other process is opening alone the log that `file` stands for. Returns true if
/// the caller now opens it alone, until it calls [`share`].
pub(super) fn enter(file: &File) -> io::Result<bool> {
    loop {
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            if lock_open_file(file, kind)? {
                return Ok(kind == LockKind::Exclusive);
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Lets other processes join.
pub(super) fn share(file: &File) -> io::Result<()> {
    lock_open_file(file, LockKind::Shared).map(drop)
}

/// Marks of the frames being written.
pub(super) struct Marks {
    locks: Arc<ByteLocks>,
    /// Marks of this process, which the system does not report to it. Neighbouring marks are
    /// joined. Example: 100..200 and 200..250 become 100..250.
    own: Mutex<Vec<Range<u64>>>,
}

impl Marks {
    pub(super) fn on(locks: Arc<ByteLocks>) -> Self {
        Self { locks, own: Mutex::default() }
    }

    pub(super) fn mark(&self, positions: &Range<u64>) -> io::Result<()> {
        self.locks.lock(LockKind::Shared, &bytes_of(positions))?;
        let mut own = self.own();
        match own.last_mut().filter(|last| last.end == positions.start) {
            Some(last) => last.end = positions.end,
            None => own.push(positions.clone()),
        }
        Ok(())
    }

    /// Removes the marks of this process up to `end`.
    pub(super) fn clear(&self, end: u64) {
        self.own().retain_mut(|positions| {
            let cleared = positions.start..positions.end.min(end);
            if !cleared.is_empty() {
                self.locks.unlock(&bytes_of(&cleared));
                positions.start = cleared.end;
            }
            !positions.is_empty()
        });
    }

    /// Returns the end of the mark that has `position`, if a living process holds the mark.
    pub(super) fn marked_until(&self, position: u64) -> io::Result<Option<u64>> {
        let end = self.own().iter().find(|own| own.contains(&position)).map(|own| own.end);
        if end.is_some() {
            return Ok(end);
        }
        let end = self.locks.locked_until(MARKS_AT + position)?;
        Ok(end.map(|end| end.saturating_sub(MARKS_AT)))
    }

    fn own(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        // The list is complete before any code under the lock can panic.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(positions: &Range<u64>) -> Range<u64> {
    MARKS_AT + positions.start..MARKS_AT + positions.end
}
