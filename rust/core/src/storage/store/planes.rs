//! All planes of an installation. They are made, opened and destroyed by name, and may be kept in
//! any kind of store.

use super::interface::Store;
use super::locks::KeyLock;
use super::peeked::PeekedCounts;
use crate::model::error::Result;
use crate::storage::seal::KeyId;

/// The planes of one installation. A plane has a name that no other plane ever gets, which is the
/// id of its account. Its data key is wrapped by the master key. The format of the wrapped key is
/// known to the layers above.
///
/// # Errors
/// Returns the errors of [`Store`], and the errors that each method names.
pub trait Planes: Send + Sync {
    /// Makes a plane. `fill` loads its store, or leaves it empty. The wrapped key is written last:
    /// a plane without a key was never acknowledged and cannot be opened. If the call fails
    /// half-way, the plane can only be destroyed.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Exists`] if the plane exists, and the errors of
    /// `fill`.
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()>;

    /// Returns the wrapped key of a plane.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Missing`] if the plane does not exist or was
    /// destroyed.
    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>>;

    /// Opens the store of a plane.
    ///
    /// # Errors
    /// Returns the errors of [`Self::wrapped_key`], and [`crate::model::error::Error::Corrupt`] if
    /// the store is damaged. Returns [`crate::model::error::Error::Database`] if this process has
    /// the store open already and its files can be open only once.
    fn open(&self, plane: &str) -> Result<Box<dyn Store>>;

    /// Returns the results of [`Self::wrapped_key`] and [`Self::open`]. A store behind a network
    /// answers both with one request.
    ///
    /// # Errors
    /// Returns the errors of both.
    fn open_with_key(&self, plane: &str) -> Result<(Vec<u8>, Box<dyn Store>)> {
        Ok((self.wrapped_key(plane)?, self.open(plane)?))
    }

    /// Replaces the wrapped key `before` of a plane. Returns false and changes no data if the plane
    /// has another wrapped key by now. The new key is durable when this returns.
    ///
    /// # Errors
    /// Returns the errors of [`Self::wrapped_key`].
    fn replace_key(&self, plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool>;

    /// Replaces the wrapped key as [`Self::replace_key`] does, by a wrapped key with a data key more
    /// or with another data key that seals. `open` has the ids of all its data keys. A store that
    /// refuses bytes under other keys accepts bytes under these keys from then on.
    ///
    /// # Errors
    /// Returns the errors of [`Self::replace_key`].
    fn turn_key(
        &self,
        plane: &str,
        before: &[u8],
        wrapped_key: &[u8],
        _open: &[KeyId],
    ) -> Result<bool> {
        self.replace_key(plane, before, wrapped_key)
    }

    /// Replaces the wrapped key as [`Self::replace_key`] does, by a wrapped key without the data
    /// key that `lock` locks.
    ///
    /// # Errors
    /// Returns the errors of [`Self::replace_key`], and
    /// [`crate::model::error::Error::Overtaken`] if another compactor has taken over.
    fn drop_key(
        &self,
        plane: &str,
        before: &[u8],
        wrapped_key: &[u8],
        _lock: &dyn KeyLock,
    ) -> Result<bool> {
        self.replace_key(plane, before, wrapped_key)
    }

    /// Destroys a plane. The key is removed first: from then on the plane cannot be opened, and the
    /// rest of its bytes is unreadable. A missing plane is not an error. Files that cannot be
    /// removed at once are left.
    ///
    /// # Errors
    /// Returns an error only if the key may still exist.
    fn destroy(&self, plane: &str) -> Result<()>;

    /// Returns the counts of a plane as of the last commit of any process. The call needs neither
    /// the key nor a lock, and is cheap enough for every plane with each scrape of the metrics.
    ///
    /// # Errors
    /// Returns the errors of [`Self::wrapped_key`], and [`crate::model::error::Error::Corrupt`] if
    /// the store is damaged.
    fn counts(&self, plane: &str) -> Result<PeekedCounts>;
}
