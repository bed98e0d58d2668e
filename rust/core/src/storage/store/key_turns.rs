//! Stores in which a data key can turn.

use std::time::Instant;

use super::locks::{KeyLock, SegmentsLock};
use crate::model::error::Result;
use crate::storage::seal::{KeyId, KeySlot};

/// Calls of a store in which a data key can turn. A key is dropped only if no handle may still store
/// bytes that the key sealed.
///
/// # Errors
/// Every method returns the errors of [`super::Store`].
pub trait KeyTurns {
    /// Tells other processes that this handle seals with the key in `slot`, until the next call or
    /// the end of the handle. Returns false if another process has [`Self::lock_key`] of the slot.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`].
    fn hold_key(&self, slot: KeySlot) -> Result<bool>;

    /// Notes that all bytes that this handle gets from now on are under the key in `slot`, whose id
    /// is `id`. At `known_at` it was the key that seals. A store that locks held keys needs no note.
    fn note_key(&self, _slot: KeySlot, _id: KeyId, _known_at: Instant) {}

    /// Returns true if the key may have turned without the notice of this handle. Its caller then
    /// reads the key file before it seals. Other callers are not told until a while later. A store
    /// that keeps a held key from being dropped returns false.
    fn may_have_turned(&self) -> bool {
        false
    }

    /// Keeps other processes from sealing with the key in slot `old`. `kept` is the id of the key
    /// that seals. Returns `None` if another process seals with the old key, or may not have
    /// noticed the turn yet. The caller has the compaction lock.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`].
    fn lock_key(&self, old: KeySlot, kept: KeyId) -> Result<Option<Box<dyn KeyLock>>>;

    /// Keeps segments that an earlier manifest named from being read, until the result is dropped.
    /// Returns `None` if a reader of an earlier manifest may still open them.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`].
    fn lock_reads(&self) -> Result<Option<Box<dyn SegmentsLock>>>;

    /// Replaces the position of each import by the result of `change`, in one commit. An import that
    /// moves meanwhile keeps its new position. The caller has the compaction lock.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`] and of `change`. No position is replaced then.
    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()>;
}
