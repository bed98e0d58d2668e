//! All planes of an installation: made, opened and destroyed by name, wherever they are kept.

use super::interface::Store;
use super::peeked::Peeked;
use crate::model::error::Result;

/// The planes of one installation. Each has a name that is never given to another, the id of its
/// account, and a data key that is wrapped by the master key; what that is like is known above.
///
/// # Errors
/// Those of [`Store`], and what each method says.
pub trait Planes: Send + Sync {
    /// Makes a plane whose store `fill` loads, or leaves empty. The wrapped key comes last: a plane
    /// without one was never acknowledged and cannot be opened. One that failed half-way may be
    /// destroyed; nothing else can be done with it.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Exists`] where there is such a plane, and those of `fill`.
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()>;

    /// The wrapped key of a plane.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Missing`] where there is no such plane, or it was destroyed.
    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>>;

    /// Opens the store of a plane.
    ///
    /// # Errors
    /// As [`Self::wrapped_key`]; [`crate::model::error::Error::Corrupt`],
    /// [`crate::model::error::Error::Database`] where this process has it open already and its
    /// files allow that once.
    fn open(&self, plane: &str) -> Result<Box<dyn Store>>;

    /// [`Self::wrapped_key`] and [`Self::open`], which are one question to a store far away.
    ///
    /// # Errors
    /// Those of both.
    fn open_with_key(&self, plane: &str) -> Result<(Vec<u8>, Box<dyn Store>)> {
        Ok((self.wrapped_key(plane)?, self.open(plane)?))
    }

    /// Replaces the wrapped key of a plane.
    ///
    /// # Errors
    /// As [`Self::wrapped_key`].
    fn replace_key(&self, plane: &str, wrapped_key: &[u8]) -> Result<()>;

    /// Destroys a plane, its key first: from then on nothing opens it, and what is left of its bytes
    /// says nothing to anybody. A plane that is gone is no error. What cannot be removed at once is
    /// left behind.
    ///
    /// # Errors
    /// Only where the key may still be there.
    fn destroy(&self, plane: &str) -> Result<()>;

    /// Counts of a plane as of the last commit of any process, which needs neither its key nor a
    /// lock: little enough to be asked for every plane with each scrape.
    ///
    /// # Errors
    /// As [`Self::wrapped_key`]; [`crate::model::error::Error::Corrupt`].
    fn counts(&self, plane: &str) -> Result<Peeked>;
}
