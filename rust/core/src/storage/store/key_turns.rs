//! Stores in which a data key can turn.

use crate::model::error::Result;
use crate::storage::seal::KeySlot;

/// Keeps other handles from sealing with a data key. The end of its process frees it at the latest.
pub trait KeyLock {}

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

    /// Keeps other processes from sealing with the key in `slot`. Returns `None` if another process
    /// seals with it.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`].
    fn lock_key(&self, slot: KeySlot) -> Result<Option<Box<dyn KeyLock>>>;

    /// Replaces the position of each import by the result of `change`, in one commit. An import that
    /// moves meanwhile keeps its new position.
    ///
    /// # Errors
    /// Returns the errors of [`super::Store`] and of `change`. No position is replaced then.
    fn replace_positions(&self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()>;
}
