//! Bytes that a caller seals with the key of a plane and stores next to the plane.

use crate::model::error::Error;
use crate::plane::Plane;
use crate::storage::seal::BlobKind;

/// Bytes that are stored next to the plane, under its data key. When the key is gone they are lost.
impl Plane {
    /// Seals `plain`. Example: the service seals each forecast before it stores it next to the
    /// plane.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the machine gives no random bytes.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.sealed.sealer().seal(BlobKind::Beside, plain)
    }

    /// Returns the bytes that [`Self::seal`] sealed, or `None` if the data key of that time was
    /// dropped. Example: `plane.unseal(&plane.seal(b"a")?)?` is `Some(b"a")`, and `None` after a
    /// turn of the data key.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for any other bytes, unless a data key has turned: a later key may
    /// have the slot of the dropped key, so such bytes cannot be told from damaged bytes.
    pub fn unseal(&self, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.sealed.open_blob(BlobKind::Beside, sealed) {
            Err(Error::Corrupt { .. }) if self.sealed.sealer().has_turned() => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Returns a keyed hash to look up names that must not be written down. Example: a file name
    /// made from the hash hides the entity from a reader of the disk.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> [u8; 16] {
        self.sealed.sealer().name_hash(name)
    }
}
