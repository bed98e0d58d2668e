//! Backups of a plane, and planes made of backups.

use std::path::Path;

use crate::model::error::Error;
use crate::plane::backup::{self, Saved, SavedFile};
use crate::plane::{Plane, binding};
use crate::storage::store::{Link, Planes};

/// Backups (`docs/format.md`, "Backup").
impl Plane {
    /// Saves `plane` of `planes`, which others may have open and write, into the folder `backup` as
    /// number `number` of its backups; files that `before` names, those of the backup before, are
    /// not written again. `None` where the compactor is at work: to be tried again.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] also for another master key, [`Error::Io`],
    /// [`Error::DiskFull`]. No file that `before` names was touched.
    pub fn save(
        (planes, plane): (&dyn Planes, &str),
        master_key: &[u8; 32],
        backup: &Path,
        number: u64,
        before: &[SavedFile],
    ) -> Result<Option<Saved>, Error> {
        backup::save((planes, plane), master_key, backup, number, before)
    }

    /// Makes a plane, `plane` of `planes`, of `files` of the folder `backup`, reads it again and
    /// compares it with `content`, the hash that [`Self::save`] gave. `saved` is the name that the
    /// plane had and the master key of the backup. With [`Link::Symbolic`] its segments stay where
    /// they are.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged backup or another master key, [`Error::Exists`],
    /// [`Error::Io`], [`Error::DiskFull`]: then there is no plane that could be opened.
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

    /// Binds a plane of fleetcast 0.3.0 to its name, and its names to their ids. Returns false for
    /// a plane that is bound.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] also for another master key, [`Error::Io`],
    /// [`Error::DiskFull`]: to be tried again.
    pub fn bind(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<bool, Error> {
        binding::bind(planes, plane, master_key)
    }
}
