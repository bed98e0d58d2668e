//! Keys of planes while the master key turns.

use crate::model::error::Error;
use crate::plane::Plane;
use crate::storage::seal::{self, MasterKeys, Sealer};
use crate::storage::store::Planes;

/// Turns of the master key (`docs/security.md`, "Keys").
impl Plane {
    /// Wraps the data keys of `plane` of `planes` under the newest master key. Returns false if that
    /// was done before. Processes that have the plane open keep it open.
    ///
    /// Example: with `[new, old]` as keys, the first call returns true and a second call false.
    ///
    /// # Errors
    /// Returns [`Error::Missing`], [`Error::Corrupt`] if no known key opens the key file,
    /// [`Error::Foreign`] for a plane of fleetcast 0.3.0, [`Error::Io`] or [`Error::DiskFull`].
    pub fn rewrap(planes: &dyn Planes, plane: &str, keys: &MasterKeys) -> Result<bool, Error> {
        let (key_file, newest) = (planes.wrapped_key(plane)?, keys.newest());
        if seal::unwrap(&newest, plane, &key_file).is_ok() {
            return Ok(false);
        }
        let (plane_id, data_keys) = {
            let open = |key: &[u8; 32]| seal::unwrap(key, plane, &key_file);
            keys.open(|| Ok(key_file.clone()), open)?
        };
        planes.replace_key(plane, &seal::wrap(&newest, plane, &plane_id, &data_keys)?)?;
        Ok(true)
    }

    /// Returns true if the key file of `plane` of `planes` has the data key of this open plane.
    /// Example: true after [`Self::rewrap`], and false if the key file of another plane was put
    /// there.
    pub fn is_of_key_file(&self, planes: &dyn Planes, plane: &str, keys: &MasterKeys) -> bool {
        let key_file = || planes.wrapped_key(plane);
        let found = keys.open(key_file, |key| seal::unwrap(key, plane, &key_file()?));
        found.is_ok_and(|(plane_id, data_keys)| {
            Sealer::of(&data_keys, plane_id).name_hash(b"") == self.sealed.sealer.name_hash(b"")
        })
    }
}
