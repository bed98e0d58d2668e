//! Marks of the transactions that are being committed, seen by every process that has the store
//! open: a shared lock on one byte of LMDB's lock file, at the number of the transaction.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::storage::store::byte_locks::{ByteLocks, Kind};

/// Offset of the mark of transaction 0: far beyond the offsets at which LMDB locks bytes, which are
/// process ids.
const MARKS_AT: u64 = 1 << 40;

/// The marks that this process sets, and its view of those of others.
pub(super) struct CommitMarks {
    locks: Arc<ByteLocks>,
    /// The transaction that this process is committing, 0 for none: the system tells a process
    /// nothing of its own locks.
    own: AtomicUsize,
}

/// A mark, taken away when dropped.
pub(super) struct Mark<'m> {
    marks: &'m CommitMarks,
    transaction: usize,
}

impl CommitMarks {
    pub(super) fn on(locks: Arc<ByteLocks>) -> Self {
        Self { locks, own: AtomicUsize::new(0) }
    }

    pub(super) fn locks(&self) -> &Arc<ByteLocks> {
        &self.locks
    }

    /// Marks `transaction` as being committed. Others may have marked the number for a moment: LMDB
    /// gives it to the next one where a transaction changed nothing.
    pub(super) fn mark(&self, transaction: usize) -> io::Result<Mark<'_>> {
        self.locks.lock(Kind::Shared, &byte_of(transaction))?;
        self.own.store(transaction, Ordering::Release);
        Ok(Mark { marks: self, transaction })
    }

    /// True where a living process is committing `transaction`.
    pub(super) fn is_under_way(&self, transaction: usize) -> io::Result<bool> {
        if self.own.load(Ordering::Acquire) == transaction {
            return Ok(true);
        }
        Ok(self.locks.locked_until(byte_of(transaction).start)?.is_some())
    }
}

fn byte_of(transaction: usize) -> Range<u64> {
    let at = MARKS_AT + transaction as u64;
    at..at + 1
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.marks.own.store(0, Ordering::Release);
        self.marks.locks.unlock(&byte_of(self.transaction));
    }
}
