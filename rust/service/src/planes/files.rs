//! The files of a plane in a folder: their identities, and changes to them.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fleetcast_core::model::error::{Error, Result};

/// Seconds and nanoseconds since 1970.
type Time = (i64, i64);

/// State of one file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    /// The device, and the file's number on it.
    id: (u64, u64),
    size: u64,
    modified: Time,
    /// The last change of data or metadata, which no program can set back.
    changed: Time,
}

/// States of the two files that an open plane uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStates {
    plane: FileState,
    key: FileState,
}

/// The two files, and the name, length and time of change of each file of the log.
#[derive(PartialEq, Eq)]
pub(super) struct FileStamps {
    pub(super) files: FileStates,
    log: Vec<(OsString, u64, Time)>,
}

/// Paths of a plane's files.
pub(super) struct Folder {
    plane: PathBuf,
    key: PathBuf,
    log: PathBuf,
}

impl FileStates {
    /// Returns true if a plane that was opened from the `earlier` files can still use these files.
    ///
    /// Other processes write to the files all the time, but a plane only grows. A mapped file that
    /// was cut short must not be read.
    pub(super) fn carry(&self, earlier: &Self) -> bool {
        self.keep_plane(earlier)
            && self.key.id == earlier.key.id
            && self.key.modified == earlier.key.modified
    }

    /// Returns true if at most the key was replaced since the `earlier` states.
    pub(super) fn keep_plane(&self, earlier: &Self) -> bool {
        self.plane.size >= earlier.plane.size && self.plane.id == earlier.plane.id
    }

    /// Returns true if the plane has grown since the `earlier` states.
    pub(super) fn are_longer_than(&self, earlier: &Self) -> bool {
        self.plane.size > earlier.plane.size
    }
}

impl Folder {
    /// The plane in the folder at `path`.
    pub(super) fn new(path: &Path) -> Self {
        Self { plane: path.join("plane.mdb"), key: path.join("key"), log: path.join("log") }
    }

    /// Returns false if the plane was deleted.
    pub(super) fn has_key(&self) -> bool {
        self.key.exists()
    }

    /// Returns the present states of the two files.
    ///
    /// # Errors
    /// Returns [`Error::Missing`] or [`Error::Io`] if a file cannot be examined.
    pub(super) fn files(&self) -> Result<FileStates> {
        Ok(FileStates { plane: state_of(&self.plane)?, key: state_of(&self.key)? })
    }

    /// Returns the states of every file that a change of the plane touches.
    ///
    /// # Errors
    /// Returns the errors of [`Self::files`].
    pub(super) fn touched(&self) -> Result<FileStamps> {
        let files = self.files()?;
        match log_of(&self.log) {
            Ok(log) => Ok(FileStamps { files, log }),
            // The store is of an earlier version, or compaction has removed the log in the
            // meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(FileStamps { files, log: Vec::new() })
            }
            Err(error) => Err(fault("list", &self.log, error)),
        }
    }
}

fn log_of(folder: &Path) -> io::Result<Vec<(OsString, u64, Time)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let stat = entry.metadata()?;
        found.push((entry.file_name(), stat.len(), (stat.ctime(), stat.ctime_nsec())));
    }
    found.sort_unstable();
    Ok(found)
}

fn state_of(path: &Path) -> Result<FileState> {
    let stat = fs::metadata(path).map_err(|error| fault("look at", path, error))?;
    Ok(FileState {
        id: (stat.dev(), stat.ino()),
        size: stat.size(),
        modified: (stat.mtime(), stat.mtime_nsec()),
        changed: (stat.ctime(), stat.ctime_nsec()),
    })
}

fn fault(operation: &str, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::missing(path),
        _ => Error::io(operation, path, error),
    }
}
