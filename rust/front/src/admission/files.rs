//! The two files of a plane, as they were when it was opened.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// State of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of its last change of content, nanoseconds since 1970.
    pub modified_ns: i64,
}

impl FileState {
    /// The state of the file at `path`.
    ///
    /// # Errors
    /// That of the system.
    pub fn of(path: &Path) -> io::Result<Self> {
        let stat = fs::metadata(path)?;
        Ok(Self {
            device: stat.dev(),
            inode: stat.ino(),
            size: stat.size(),
            modified_ns: stat.mtime() * 1_000_000_000 + stat.mtime_nsec(),
        })
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The files that an open plane stands on.
#[derive(Debug)]
pub struct PlaneFiles {
    plane: (PathBuf, FileState),
    key: (PathBuf, FileState),
}

impl PlaneFiles {
    /// The files in `folder`, in the states in which they were found when the plane was opened or
    /// last used.
    #[must_use]
    pub fn new(folder: &Path, plane: FileState, key: FileState) -> Self {
        Self { plane: (folder.join("plane.mdb"), plane), key: (folder.join("key"), key) }
    }

    /// True where the plane still stands on what is there.
    ///
    /// Others are at work in the files all the time, but a plane only grows: a mapped file that was
    /// cut short must not be touched.
    #[must_use]
    pub fn carry(&self) -> bool {
        let (Ok(plane), Ok(key)) = (FileState::of(&self.plane.0), FileState::of(&self.key.0))
        else {
            return false;
        };
        plane.is_same_file(&self.plane.1)
            && plane.size >= self.plane.1.size
            && key.is_same_file(&self.key.1)
            && key.modified_ns == self.key.1.modified_ns
    }
}
