//! Backups of a plane, and planes made of backups.

use std::path::Path;

use crate::model::error::Error;
use crate::plane::Plane;
use crate::plane::backup::{self, Saved, SavedFile};
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
    /// compares it with `content`, the hash that [`Self::save`] gave. `master_keys` are that of the
    /// backup and that of the new plane. With [`Link::Symbolic`] its segments stay where they are.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged backup or another master key, [`Error::Exists`],
    /// [`Error::Io`], [`Error::DiskFull`]: then there is no plane that could be opened.
    pub fn restore(
        (planes, plane): (&dyn Planes, &str),
        master_keys: [&[u8; 32]; 2],
        backup: &Path,
        files: &[SavedFile],
        content: &[u8; 32],
        link: Link,
    ) -> Result<(), Error> {
        backup::restore((planes, plane), master_keys, backup, files, content, link)
    }
}
