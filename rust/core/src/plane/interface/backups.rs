//! Backups of a plane, and planes made from backups.

use std::path::Path;

use crate::model::error::Error;
use crate::plane::backup::{self, SaveReport, SavedFile};
use crate::plane::{Plane, binding};
use crate::storage::store::{Link, Planes};

/// Backups (`docs/format.md`, "Backup").
impl Plane {
    /// Saves `plane` of `planes` into the folder `backup`, as number `number` of its backups. Other
    /// processes may have the plane open and write. Files in `before`, the list of the previous
    /// backup, are not written again. Returns `None` if the compactor is at work: try again.
    ///
    /// Example: `Plane::save((&planes, "acme"), &key, folder, 2, &first.files)` writes only the
    /// files that backup 1 lacks.
    ///
    /// # Errors
    /// Returns [`Error::Missing`], [`Error::Corrupt`] (also for another master key), [`Error::Io`]
    /// or [`Error::DiskFull`]. Files in `before` stay untouched.
    pub fn save(
        (planes, plane): (&dyn Planes, &str),
        master_key: &[u8; 32],
        backup: &Path,
        number: u64,
        before: &[SavedFile],
    ) -> Result<Option<SaveReport>, Error> {
        backup::save((planes, plane), master_key, backup, number, before)
    }

    /// Makes `plane` of `planes` from `files` of the folder `backup`. Reads the new plane again and
    /// compares it with `content`, the hash that [`Self::save`] returned. `saved` is the name that
    /// the plane had and the master key of the backup. With [`Link::Symbolic`] the segments stay
    /// where they are.
    ///
    /// Example: with `saved` = `("acme", &old_key)` and plane `"trial"`, the rows of `acme` become
    /// a plane `trial` under the new master key.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for a damaged backup or another master key, [`Error::Exists`],
    /// [`Error::Io`] or [`Error::DiskFull`]. After an error there is no plane that could be opened.
    pub fn restore(
        (planes, plane): (&dyn Planes, &str),
        saved: (&str, &[u8; 32]),
        new_master_key: &[u8; 32],
        backup: &Path,
        files: &[SavedFile],
        content: &[u8; 32],
        link: Link,
    ) -> Result<(), Error> {
        backup::restore((planes, plane), saved, new_master_key, backup, files, content, link)
    }

    /// Binds a plane of fleetcast 0.3.0 to its name, and its names to their ids. Returns false if
    /// the plane is bound already. Example: the first call returns true, and a second call returns
    /// false.
    ///
    /// # Errors
    /// Returns [`Error::Missing`], [`Error::Corrupt`] (also for another master key), [`Error::Io`]
    /// or [`Error::DiskFull`]. The call can be repeated.
    pub fn bind(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<bool, Error> {
        binding::bind(planes, plane, master_key)
    }
}
