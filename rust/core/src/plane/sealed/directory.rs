//! The directory of a plane, and the file in it that holds the wrapped data key.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::model::error::{Error, Result};

const KEY_NAME: &str = "key";
const STAGED_KEY_NAME: &str = "key.new";

/// Makes `directory` for its owner alone.
///
/// # Errors
/// [`Error::Exists`] where it holds anything, [`Error::Io`].
pub(in crate::plane) fn make(directory: &Path) -> Result<()> {
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
        Some(_) => Err(Error::Exists(directory.to_owned())),
    }
}

/// The wrapped key in `directory`.
///
/// # Errors
/// [`Error::Missing`], [`Error::Io`].
pub(in crate::plane) fn read_key(directory: &Path) -> Result<Vec<u8>> {
    let path = directory.join(KEY_NAME);
    std::fs::read(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing(path.clone()),
        _ => Error::io("read", &path, error),
    })
}

/// Writes the key so that it is there whole or not at all, even after a power cut.
///
/// # Errors
/// [`Error::Io`], [`Error::DiskFull`].
pub(in crate::plane) fn write_key(directory: &Path, wrapped: &[u8]) -> Result<()> {
    let path = directory.join(KEY_NAME);
    let staged = directory.join(STAGED_KEY_NAME);
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(wrapped)?;
        file.sync_all()?;
        std::fs::rename(&staged, &path)?;
        // The directory's own entry must survive a power cut as well, and so must those above it:
        // an attempt that failed may have made them. Those of others may be closed to us.
        File::open(directory)?.sync_all()?;
        let absolute = std::path::absolute(directory)?;
        let above = absolute.ancestors().skip(1);
        above.flat_map(File::open).try_for_each(|directory| directory.sync_all())
    };
    write().map_err(|error| Error::io("write", &path, error))
}
