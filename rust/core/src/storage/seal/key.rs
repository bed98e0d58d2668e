//! The data key of a plane.

use std::fmt;

use zeroize::Zeroizing;

use super::random::fill_random;
use crate::model::error::Result;

/// Key that a tenant's bytes are sealed under; erased from memory when dropped.
pub struct DataKey(pub(super) Zeroizing<[u8; 32]>);

impl DataKey {
    /// A new random key.
    ///
    /// # Errors
    ///
    /// [`crate::model::error::Error::Io`] if the system has no random bytes.
    pub fn random() -> Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        fill_random(&mut *key)?;
        Ok(Self(key))
    }

    /// A key of known bytes.
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
