//! Pieces of objects on the local disk, shared by the processes of a node.
//!
//! A piece is a file. It is written under another name and renamed, and never synced. The sum at
//! its end shows if a power cut has damaged the piece, which is then fetched again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use fleetcast_core::model::error::{Error, Result};

use crate::identity::Id;

/// Bytes of a piece; the last piece of an object may be shorter.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;

const SUM_BYTES: usize = 4;

pub(crate) struct ObjectCache {
    directory: PathBuf,
    bytes_max: u64,
    /// Bytes that this process has written since it last looked for pieces to remove.
    written: AtomicU64,
}

impl ObjectCache {
    /// Makes a cache in `directory`, and creates the directory.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the directory cannot be created.
    pub(crate) fn new(directory: &Path, bytes_max: u64) -> Result<Self> {
        make(directory).map_err(|error| Error::io("make", directory, error))?;
        Ok(Self { directory: directory.to_owned(), bytes_max, written: AtomicU64::new(0) })
    }

    fn path(&self, segment: Id, piece: u64) -> PathBuf {
        self.directory.join(format!("{}.{piece}", segment.hex()))
    }

    /// Returns a piece if it is here and whole.
    pub(crate) fn get(&self, segment: Id, piece: u64) -> Option<Vec<u8>> {
        let path = self.path(segment, piece);
        let mut bytes = fs::read(&path).ok()?;
        let content = bytes.len().checked_sub(SUM_BYTES)?;
        let sum = crc32fast::hash(&bytes[..content]).to_le_bytes();
        if bytes[content..] != sum {
            drop(fs::remove_file(&path));
            return None;
        }
        bytes.truncate(content);
        // Eviction uses the time of last use. A failure here costs at most one fetch.
        drop(
            File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now())),
        );
        Some(bytes)
    }

    /// Keeps a piece if there is room. A failure is ignored, because the object can be read again.
    pub(crate) fn put(&self, segment: Id, piece: u64, bytes: &[u8]) {
        let path = self.path(segment, piece);
        let staged = path.with_extension(format!("{piece}.{}.new", std::process::id()));
        let write = || {
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&staged)?;
            file.write_all(bytes)?;
            file.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
            fs::rename(&staged, &path)
        };
        // A folder that was removed under the process is made again.
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let written = write().or_else(|error| {
            if is_gone(&error) { make(&self.directory).and_then(|()| write()) } else { Err(error) }
        });
        if written.is_err() {
            drop(fs::remove_file(&staged));
        }
        // Eviction runs after each sixteenth of the room is written.
        let written =
            self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        if written >= self.bytes_max / 16 {
            self.written.store(0, Ordering::Relaxed);
            drop(self.evict());
        }
    }

    /// Removes the least recently used pieces until an eighth of the room is free. Example: with 8
    /// GB of room, 7 GB of pieces stay.
    fn evict(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue };
            files.push((meta.modified()?, meta.len(), entry.path()));
        }
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if bytes <= self.bytes_max {
            return Ok(());
        }
        files.sort();
        for (_, length, path) in files {
            if bytes <= self.bytes_max / 8 * 7 {
                break;
            }
            // Another process may have removed it first.
            drop(fs::remove_file(path));
            bytes = bytes.saturating_sub(length);
        }
        Ok(())
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("cache");
        let cache = ObjectCache::new(&folder, 1 << 30).unwrap();
        fs::remove_dir(&folder).unwrap();
        cache.put(Id([1; 16]), 0, b"content");
        assert_eq!(cache.get(Id([1; 16]), 0).as_deref(), Some(b"content".as_slice()));
    }

    #[test]
    fn a_spoilt_piece_counts_as_absent() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ObjectCache::new(directory.path(), 1 << 30).unwrap();
        cache.put(Id([1; 16]), 0, b"content");
        assert_eq!(cache.get(Id([1; 16]), 0).as_deref(), Some(b"content".as_slice()));
        let path = cache.path(Id([1; 16]), 0);
        let stored = fs::read(&path).unwrap();
        for length in 0..stored.len() {
            fs::write(&path, &stored[..length]).unwrap();
            assert!(cache.get(Id([1; 16]), 0).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn pieces_used_longest_ago_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ObjectCache::new(directory.path(), 1_000).unwrap();
        for piece in 0..8 {
            cache.put(Id([1; 16]), piece, &[7; 200]);
            assert!(cache.get(Id([1; 16]), 0).is_some(), "it was just used");
        }
        assert!(cache.get(Id([1; 16]), 1).is_none());
    }
}
