//! Keys of planes while the master key or a data key turns.

use crate::model::error::Error;
use crate::plane::{KeyFile, Plane};
use crate::storage::seal::{self, MasterKeys};
use crate::storage::store::Planes;

/// Turns of keys (`docs/security.md`, "Keys").
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
        let newest = keys.newest();
        loop {
            let key_file = planes.wrapped_key(plane)?;
            if seal::unwrap(&newest, plane, &key_file).is_ok() {
                return Ok(false);
            }
            let open = |key: &[u8; 32]| seal::unwrap(key, plane, &key_file);
            let (plane_id, data_keys) = keys.open(|| Ok(key_file.clone()), open)?;
            let wrapped = seal::wrap(&newest, plane, &plane_id, &data_keys)?;
            // If a data key turned meanwhile, its key file is wrapped.
            if planes.replace_key(plane, &key_file, &wrapped)? {
                return Ok(true);
            }
        }
    }

    /// Returns true if `master_key` wraps the data keys of `plane` of `planes`. Example: false for
    /// the new key until [`Self::rewrap`].
    ///
    /// # Errors
    /// Returns [`Error::Missing`] or [`Error::Io`] if the key file cannot be read.
    pub fn is_wrapped_by(
        planes: &dyn Planes,
        plane: &str,
        master_key: &[u8; 32],
    ) -> Result<bool, Error> {
        let key_file = planes.wrapped_key(plane)?;
        Ok(seal::unwrap(master_key, plane, &key_file).is_ok())
    }

    /// Tells this plane its key file, from which its keys come from now on while they turn. Without
    /// it the plane keeps the keys with which it was opened, and [`Self::rekey`] is refused.
    /// Example: `plane.follow_key_file(KeyFile::new(planes, "acme", master_keys))`.
    pub fn follow_key_file(&self, file: KeyFile) {
        self.sealed.follow_key_file(file);
    }

    /// Takes the keys of the key file. Returns false if the file has the keys of another plane, or
    /// if no known master key opens it. Example: true after [`Self::rewrap`] and [`Self::rekey`] by
    /// another process, and false if the key file of another plane was put there.
    pub fn takes_key_file(&self) -> bool {
        self.sealed.takes_key_file()
    }

    /// Gives the plane a new data key, which seals all new bytes of every process at once. Later
    /// calls of [`Self::compact`] seal the older bytes anew, and drop the old key when no bytes are
    /// left under it. While an old key is left, a further call makes no third key. Returns `None`
    /// if another process compacts. Call it again then, and after an error: it goes on where it was.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`], [`Error::DiskFull`], and [`Error::Invalid`] if the
    /// data key of this plane cannot change.
    pub fn rekey(&self) -> Result<Option<()>, Error> {
        self.writer.flush()?;
        self.compactor.begin_turn()
    }

    /// Returns the bytes of segments and blocks that are still under an old data key. Returns `None`
    /// if there is no old key: no turn began, or it is complete. Example: 0 if only names are left.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn old_key_bytes(&self) -> Result<Option<u64>, Error> {
        self.follower.follow()?;
        self.compactor.old_key_bytes()
    }
}
