//! Planes as folders of one directory. A folder has the files of a store, and a file with the
//! wrapped data key.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::interface::Store;
use super::lmdb::LmdbStore;
use super::peeked::PeekedCounts;
use super::planes::Planes;
use crate::model::error::{Error, Result};

const KEY_NAME: &str = "key";
const STAGED_KEY_NAME: &str = "key.new";
/// Most attempts to remove a folder. A compaction in progress may add a file to the folder, until
/// it finds that the folder is gone.
const REMOVALS_MAX: u32 = 10;

/// The planes in the folders of a directory. A plane has the name of its folder.
#[derive(Clone, Debug)]
pub struct DirectoryPlanes(PathBuf);

impl DirectoryPlanes {
    /// Names the planes in `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the directory and the name of the plane in `folder`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the path does not end in the name of a folder.
    pub fn of_plane(folder: &Path) -> Result<(Self, &str)> {
        let parts = folder.parent().zip(folder.file_name().and_then(|name| name.to_str()));
        let message = || format!("{} does not name a folder", folder.display());
        let (directory, name) = parts.ok_or_else(|| Error::Invalid { message: message() })?;
        Ok((Self::new(directory), name))
    }

    fn folder(&self, plane: &str) -> PathBuf {
        self.0.join(plane)
    }
}

impl Planes for DirectoryPlanes {
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        let folder = self.folder(plane);
        make(&folder)?;
        fill(&LmdbStore::create(&folder)?)?;
        write_key(&folder, wrapped_key)
    }

    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>> {
        let path = self.folder(plane).join(KEY_NAME);
        std::fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::missing(&path),
            _ => Error::io("read", &path, error),
        })
    }

    fn open(&self, plane: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(LmdbStore::open(&self.folder(plane))?))
    }

    fn replace_key(&self, plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool> {
        let folder = self.folder(plane);
        // A key that is being destroyed must not come back.
        let _turn = turn(&folder)?;
        if self.wrapped_key(plane)? != before {
            return Ok(false);
        }
        write_key(&folder, wrapped_key)?;
        Ok(true)
    }

    fn destroy(&self, plane: &str) -> Result<()> {
        let folder = self.folder(plane);
        let key = folder.join(KEY_NAME);
        let turn = turn(&folder).or_else(|error| match error {
            Error::Missing(_) => Ok(None),
            error => Err(error),
        })?;
        for name in [KEY_NAME, STAGED_KEY_NAME] {
            match std::fs::remove_file(folder.join(name)) {
                Err(error) if !is_gone(&error) => return Err(Error::io("remove", &key, error)),
                _ => {}
            }
        }
        drop(turn);
        for _ in 0..REMOVALS_MAX {
            if std::fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                break;
            }
        }
        Ok(())
    }

    fn counts(&self, plane: &str) -> Result<PeekedCounts> {
        LmdbStore::peek(&self.folder(plane))
    }
}

/// Takes the right to replace or to destroy the key in a folder, until the file is dropped.
///
/// # Errors
/// Returns [`Error::Missing`] if the folder does not exist, and [`Error::Io`].
fn turn(folder: &Path) -> Result<Option<File>> {
    let locked = || {
        let opened = File::open(folder)?;
        opened.lock()?;
        Ok(opened)
    };
    locked().map(Some).map_err(|error| match error {
        error if is_gone(&error) => Error::missing(folder),
        error => Error::io("lock", folder, error),
    })
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes `directory`, for its owner alone.
///
/// # Errors
/// Returns [`Error::Exists`] if the directory is not empty, and [`Error::Io`] if it cannot be made.
fn make(directory: &Path) -> Result<()> {
    let mut entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let result = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            return result.map_err(|error| Error::io("make", directory, error));
        }
        Err(error) => return Err(Error::io("list", directory, error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Error::exists(directory)),
    }
}

/// Writes the key. Even after a power cut, the file has the whole key or does not exist.
///
/// # Errors
/// Returns [`Error::Io`] or [`Error::DiskFull`] if the key cannot be written.
fn write_key(directory: &Path, wrapped: &[u8]) -> Result<()> {
    let path = directory.join(KEY_NAME);
    let staged = directory.join(STAGED_KEY_NAME);
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(wrapped)?;
        file.sync_all()?;
        std::fs::rename(&staged, &path)?;
        // The directory's entry must survive a power cut, and so must the directories above it,
        // because a failed attempt may have made them. Directories of other users may refuse to be
        // opened.
        File::open(directory)?.sync_all()?;
        let absolute = std::path::absolute(directory)?;
        let above = absolute.ancestors().skip(1);
        above.flat_map(File::open).try_for_each(|directory| directory.sync_all())
    };
    write().map_err(|error| Error::io("write", &path, error))
}
