//! Space of LMDB's file that its own commits never give back.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::environment::Environment;
use super::tables::Tables;
use crate::model::error::{Error, Result};
use crate::storage::store::log::flaw;

/// Smallest file that is worth it.
const FILE_BYTES_MIN: u64 = 256 << 10;

/// Writes the file at `path` anew without its free pages, where most of it is free; true where that
/// was done, and the environment has to be opened anew. Nobody else has it open. On return the file
/// at `path` has its name for good.
///
/// # Errors
/// Those of the machine; the file is as it was then.
pub(super) fn shrink(path: &Path, env: &Environment, tables: &Tables) -> Result<bool> {
    let bytes = env.file_bytes()?;
    if bytes < flaw::bound(FILE_BYTES_MIN, 48 << 10) || 2 * tables.used_bytes(env)? >= bytes {
        // An earlier call may have failed after it had given the name to a new file.
        sync_directory(path)?;
        return Ok(false);
    }
    let new = path.with_extension("new");
    let written = || -> Result<()> {
        let mut options = OpenOptions::new();
        let opened = options.create(true).truncate(true).write(true).mode(0o600).open(&new);
        let mut file = opened.map_err(|error| Error::io("make", &new, error))?;
        env.copy_to(&mut file)?;
        file.sync_all().map_err(|error| Error::io("sync", &new, error))
    };
    match written() {
        Ok(()) => {}
        Err(error) => {
            drop(std::fs::remove_file(&new));
            // It is tried again when there is space.
            return match error {
                Error::DiskFull => sync_directory(path).map(|()| false),
                error => Err(error),
            };
        }
    }
    std::fs::rename(&new, path).map_err(|error| Error::io("name", path, error))?;
    sync_directory(path)?;
    Ok(true)
}

fn sync_directory(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(path);
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Error::io("sync", directory, error))
}
