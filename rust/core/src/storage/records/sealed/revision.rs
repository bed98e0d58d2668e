//! The revision of a store, kept in a file elsewhere. The file shows if an older copy of the whole
//! store was put back.

use std::fs::{File, remove_file, rename};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::head::RecordsHead;
use super::seal::RecordSeal;
use crate::model::error::{Error, Result};

/// Number of files that this process has prepared. Makes their names unique.
static PREPARED: AtomicU64 = AtomicU64::new(0);

/// Path of the file. The file is one revision behind the store if a process ended between the two
/// writes.
pub(super) struct RevisionFile(PathBuf);

/// A new file next to the file that it will replace.
pub(super) struct PreparedRevision {
    new: PathBuf,
    path: PathBuf,
}

impl RevisionFile {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// # Errors
    /// Returns [`Error::Foreign`] if the file exists, because the store then had a seal.
    pub(super) fn refuse_unsealed(&self, place: &str) -> Result<()> {
        if !self.0.exists() {
            return Ok(());
        }
        let file = self.0.display();
        Err(self.unless_on_purpose(&format!("{place} has no seal, and {file} says it had one")))
    }

    fn unless_on_purpose(&self, fault: &str) -> Error {
        let file = self.0.display();
        Error::Foreign { what: format!("{fault}. If that was done on purpose, remove {file}") }
    }

    /// Returns the content, or `None` if the file does not exist.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>> {
        match std::fs::read(&self.0) {
            Ok(sealed) => Ok(Some(sealed)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &self.0, error)),
        }
    }

    /// Compares a store with the revision that the file had before, and brings the file up to date.
    /// `open` opens the content of the file.
    ///
    /// # Errors
    /// Returns [`Error::Foreign`] if the file is of a later state or of another store.
    pub(super) fn compare(
        &self,
        sealed: Option<Vec<u8>>,
        open: impl FnOnce(&[u8]) -> Option<RecordsHead>,
        seal: &RecordSeal,
        head: &RecordsHead,
        place: &str,
    ) -> Result<()> {
        let noted = sealed.map(|sealed| open(&sealed));
        let file = self.0.display();
        let fault = match noted {
            Some(None) => format!("{file} is damaged or of another master key"),
            Some(Some(noted)) if noted.store != head.store => {
                format!("{file} is of another store than {place}")
            }
            Some(Some(noted)) if noted.revision > head.revision => format!(
                "{place} is of revision {}, and {file} says {}: an older copy was put back",
                head.revision, noted.revision
            ),
            Some(Some(noted)) if noted.revision == head.revision => return Ok(()),
            Some(Some(_)) | None => {
                // A failure is ignored: the next change reports that the file cannot be written.
                drop(self.prepare(seal, head).and_then(PreparedRevision::publish));
                return Ok(());
            }
        };
        Err(self.unless_on_purpose(&fault))
    }

    /// Writes a new file with the state of `head`, durably.
    pub(super) fn prepare(
        &self,
        seal: &RecordSeal,
        head: &RecordsHead,
    ) -> Result<PreparedRevision> {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        let number = PREPARED.fetch_add(1, Ordering::Relaxed);
        name.push(format!("-{}-{number}", std::process::id()));
        let new = self.0.with_file_name(name);
        let sealed = seal.seal_revision(head)?;
        let written = || {
            drop(remove_file(&new)); // left by a process that was killed here and had the same id
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(&sealed)?;
            file.sync_all()
        };
        written().map_err(|error| Error::io("write", &new, error))?;
        Ok(PreparedRevision { new, path: self.0.clone() })
    }
}

impl PreparedRevision {
    /// Renames the new file over the old file.
    pub(super) fn publish(self) -> Result<()> {
        let named = || {
            rename(&self.new, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        named().map_err(|error| Error::io("write", &self.path, error))
    }
}

impl Drop for PreparedRevision {
    fn drop(&mut self) {
        // Once the new file was renamed, this removes no file.
        drop(remove_file(&self.new));
    }
}
