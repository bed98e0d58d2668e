//! Bytes sealed for those who keep something beside a plane.

use crate::model::error::Error;
use crate::plane::Plane;
use crate::storage::seal::Kind;

/// Bytes that are kept beside the plane, under its data key: they end with it.
impl Plane {
    /// Seals `plain`.
    ///
    /// # Errors
    /// [`Error::Io`] where the machine gives no random bytes.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.sealed.sealer.seal(Kind::Beside, plain)
    }

    /// The bytes that [`Self::seal`] sealed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything else.
    pub fn unseal(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        self.sealed.sealer.open(Kind::Beside, sealed)
    }

    /// A keyed hash to look up under names that must not be written down.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> [u8; 16] {
        self.sealed.sealer.name_hash(name)
    }
}
