//! The data key of a plane.

use std::fmt;

use zeroize::Zeroizing;

use super::random::fill_random;
use crate::model::error::Result;

/// Key that seals a tenant's bytes. Dropping it erases it from memory.
#[derive(Clone, PartialEq, Eq)]
pub struct DataKey(pub(super) Zeroizing<[u8; 32]>);

impl DataKey {
    /// Makes a new random key.
    ///
    /// # Errors
    ///
    /// Returns [`crate::model::error::Error::Io`] if the system has no random bytes.
    pub fn random() -> Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        fill_random(&mut *key)?;
        Ok(Self(key))
    }

    /// Makes a key of known bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*bytes))
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(..)")
    }
}
