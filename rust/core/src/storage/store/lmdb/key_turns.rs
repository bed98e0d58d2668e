//! Locks on the data keys of a plane: bytes of LMDB's lock file, one for each slot.

use std::ops::Range;
use std::sync::Arc;

use super::records;
use super::store::LmdbStore;
use crate::model::error::Result;
use crate::storage::seal::{KeyId, KeySlot};
use crate::storage::store::byte_locks::{ByteLocks, LockKind, locked};
use crate::storage::store::interface::Store;
use crate::storage::store::key_turns::KeyTurns;
use crate::storage::store::locks::{KeyLock, SegmentsLock};

/// Offset of the byte of slot 0: beyond the marks of transactions, and below the marks of the log.
const SLOTS_AT: u64 = 1 << 61;

struct LockedKey {
    locks: Arc<ByteLocks>,
    slot: KeySlot,
}

impl KeyLock for LockedKey {}

impl Drop for LockedKey {
    fn drop(&mut self) {
        self.locks.unlock(&byte_of(self.slot));
    }
}

fn byte_of(slot: KeySlot) -> Range<u64> {
    let at = SLOTS_AT + u64::from(slot);
    at..at + 1
}

impl LmdbStore {
    fn lock_slot(&self, kind: LockKind, slot: KeySlot) -> Result<bool> {
        self.env.check_process()?;
        locked(self.directory(), self.env.byte_locks().lock(kind, &byte_of(slot)))
    }
}

impl KeyTurns for LmdbStore {
    fn hold_key(&self, slot: KeySlot) -> Result<bool> {
        if !self.lock_slot(LockKind::Shared, slot)? {
            return Ok(false);
        }
        self.env.byte_locks().unlock(&byte_of(1 - slot));
        Ok(true)
    }

    fn lock_key(&self, slot: KeySlot, _kept: KeyId) -> Result<Option<Box<dyn KeyLock>>> {
        let is_locked = self.lock_slot(LockKind::Exclusive, slot)?;
        let locks = Arc::clone(self.env.byte_locks());
        Ok(is_locked.then(|| Box::new(LockedKey { locks, slot }) as _))
    }

    fn lock_reads(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        self.lock_removal()
    }

    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
        self.log.follow()?;
        let (log_end, ..) = self.log.seen();
        self.write("replace the cursors", |txn| {
            let mut head = self.tables.head(txn)?;
            let mut cursors = self.tables.cursors(txn)?;
            self.log.move_cursors(head.cursors_at, &mut cursors);
            head.cursors_at = head.cursors_at.max(log_end);
            cursors.replace(change)?;
            self.tables.meta.put(txn, records::CURSORS, &records::encode_cursors(&cursors))?;
            self.tables.put_head(txn, head)
        })
    }
}
