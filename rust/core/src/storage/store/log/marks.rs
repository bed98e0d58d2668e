//! Marks of the frames that are under way, and of the processes that have the log open.
//!
//! Readers see what is durable. Where more than that was written, they ask if those are alive whose
//! it is: what a dead one left is made durable, or made void, before the read answers.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::storage::store::byte_locks::{ByteLocks, Kind, lock_open_file};

/// Offset of the mark of the position 0: far beyond those of transactions.
const MARKS_AT: u64 = 1 << 62;
/// Time until an opener looks again if the one who opens alone has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Waits until nobody is about to open the log alone that `file` stands for; true where the caller
/// is, until it shares that.
pub(super) fn enter(file: &File) -> io::Result<bool> {
    loop {
        for kind in [Kind::Exclusive, Kind::Shared] {
            if lock_open_file(file, kind)? {
                return Ok(kind == Kind::Exclusive);
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Lets others join.
pub(super) fn share(file: &File) -> io::Result<()> {
    lock_open_file(file, Kind::Shared).map(drop)
}

/// The frames that are under way.
pub(super) struct Marks {
    locks: Arc<ByteLocks>,
    /// Those of this process, of which the system tells it nothing; neighbours are one.
    own: Mutex<Vec<Range<u64>>>,
}

impl Marks {
    pub(super) fn on(locks: Arc<ByteLocks>) -> Self {
        Self { locks, own: Mutex::default() }
    }

    pub(super) fn mark(&self, positions: &Range<u64>) -> io::Result<()> {
        self.locks.lock(Kind::Shared, &bytes_of(positions))?;
        let mut own = self.own();
        match own.last_mut().filter(|last| last.end == positions.start) {
            Some(last) => last.end = positions.end,
            None => own.push(positions.clone()),
        }
        Ok(())
    }

    /// Takes away the marks of this process up to `end`.
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

    /// The end of the mark of a living process that `position` lies in.
    pub(super) fn marked_until(&self, position: u64) -> io::Result<Option<u64>> {
        let end = self.own().iter().find(|own| own.contains(&position)).map(|own| own.end);
        if end.is_some() {
            return Ok(end);
        }
        let end = self.locks.locked_until(MARKS_AT + position)?;
        Ok(end.map(|end| end.saturating_sub(MARKS_AT)))
    }

    fn own(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        // Every change is complete before anything can panic.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(positions: &Range<u64>) -> Range<u64> {
    MARKS_AT + positions.start..MARKS_AT + positions.end
}
