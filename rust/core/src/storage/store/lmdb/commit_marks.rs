//! Marks of the transactions that are being committed, which every process with the store open can
//! see. A mark is a shared lock on one byte of LMDB's lock file, at the number of the transaction.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::storage::store::byte_locks::{ByteLocks, LockKind};

/// Offset of the mark of transaction 0. LMDB locks bytes at process ids, and this offset is far
/// beyond them. Example: the mark of transaction 7 is on byte 2^40 + 7.
const MARKS_AT: u64 = 1 << 40;

/// The marks of this process, and the view of the marks of other processes.
pub(super) struct CommitMarks {
    locks: Arc<ByteLocks>,
    /// The transaction that this process is committing, or 0. The system does not report a
    /// process's locks to the process itself.
    own: AtomicUsize,
}

/// A mark. Dropping it removes the mark.
pub(super) struct CommitMark<'m> {
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

    /// Marks `transaction` as being committed. Another process may hold a mark with this number for
    /// a moment: if a transaction changes no page, LMDB gives its number to the next transaction.
    pub(super) fn mark(&self, transaction: usize) -> io::Result<CommitMark<'_>> {
        self.locks.lock(LockKind::Shared, &byte_of(transaction))?;
        self.own.store(transaction, Ordering::Release);
        Ok(CommitMark { marks: self, transaction })
    }

    /// Returns true if a living process is committing `transaction`.
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

impl Drop for CommitMark<'_> {
    fn drop(&mut self) {
        self.marks.own.store(0, Ordering::Release);
        self.marks.locks.unlock(&byte_of(self.transaction));
    }
}
