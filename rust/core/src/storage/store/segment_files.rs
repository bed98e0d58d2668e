//! Segments of the embedded store: one file each in `segments/`, and the locks on them.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::interface::{Link, NewSegment, SegmentId};
use super::locks::{CompactionLock, SegmentsLock};
use crate::model::error::{Error, Result};

const COMPACTION_LOCK: &str = "compaction.lock";
const SEGMENTS_LOCK: &str = "segments.lock";

/// The segment files of one plane.
pub(super) struct SegmentFiles {
    plane: PathBuf,
    directory: PathBuf,
    names: Arc<SegmentNames>,
}

/// State of the names of segments: which names may not be durable yet.
#[derive(Default)]
struct SegmentNames {
    /// True if the name of a segment may not be durable.
    is_new: AtomicBool,
    /// True if this process made the name of the directory durable.
    is_directory_safe: AtomicBool,
}

/// A lock of the open file. It ends when the file is closed, and with the process.
struct FileLock {
    file: File,
    process_id: u32,
}

impl FileLock {
    fn held(file: File) -> Self {
        Self { file, process_id: std::process::id() }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A forked child shares the open file. If the child unlocked its copy, the parent would
        // lose the lock.
        if std::process::id() == self.process_id {
            // A child that was forked in the meantime has the file open until it executes its
            // program. So closing the file would not end the lock. Unlocking a held lock does not
            // fail.
            let _ = self.file.unlock();
        }
    }
}

impl CompactionLock for FileLock {}

impl SegmentsLock for FileLock {}

/// A file that is removed if it is dropped before it is finished.
struct UnfinishedFile {
    file: File,
    path: PathBuf,
    names: Arc<SegmentNames>,
    is_finished: bool,
}

impl SegmentFiles {
    pub(super) fn of(plane: &Path) -> Self {
        let directory = plane.join("segments");
        Self { plane: plane.to_owned(), directory, names: Arc::default() }
    }

    pub(super) fn path(&self, id: &SegmentId) -> PathBuf {
        self.directory.join(name_of(id))
    }

    pub(super) fn lock(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        let lock = self.lock_file(COMPACTION_LOCK, File::try_lock)?;
        Ok(lock.map(|lock| Box::new(lock) as _))
    }

    pub(super) fn pin(&self) -> Result<Box<dyn SegmentsLock>> {
        let lock =
            self.lock_file(SEGMENTS_LOCK, |file| file.lock_shared().map_err(TryLockError::Error))?;
        Ok(Box::new(lock.ok_or(Error::Stale)?))
    }

    pub(super) fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>> {
        let lock = self.lock_file(SEGMENTS_LOCK, File::try_lock)?;
        Ok(lock.map(|lock| Box::new(lock) as _))
    }

    fn lock_file(
        &self,
        name: &str,
        lock: impl FnOnce(&File) -> Result<(), TryLockError>,
    ) -> Result<Option<FileLock>> {
        let path = self.plane.join(name);
        let mut options = OpenOptions::new();
        let opened = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = opened.map_err(|error| Error::io("open", &path, error))?;
        match lock(&file) {
            Ok(()) => Ok(Some(FileLock::held(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &path, error)),
        }
    }

    fn make_directory(&self) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Error::io("make", &self.directory, error))
            }
            _ => Ok(()),
        }
    }

    /// Gives a file the name of a segment as well. Returns false if the file system cannot link it.
    pub(super) fn link(&self, id: &SegmentId, file: &Path, link: Link) -> Result<bool> {
        self.make_directory()?;
        let path = self.path(id);
        match link {
            Link::Hard => Ok(std::fs::hard_link(file, &path).is_ok()),
            Link::Symbolic => {
                let linked = std::os::unix::fs::symlink(file, &path);
                linked.map_err(|error| Error::io("link", &path, error)).map(|()| true)
            }
        }
    }

    /// Makes all segments and their names durable.
    pub(super) fn sync(&self) -> Result<()> {
        for (id, _) in self.list()? {
            let path = self.path(&id);
            let failed = |error| Error::io("sync", &path, error);
            let meta = path.symlink_metadata().map_err(failed)?;
            // The process that wrote a linked file has made it durable.
            if meta.is_file() && meta.nlink() == 1 {
                File::open(&path).and_then(|file| file.sync_all()).map_err(failed)?;
            }
        }
        match File::open(&self.directory).and_then(|directory| directory.sync_all()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("sync", &self.directory, error))
            }
            _ => Ok(()),
        }
    }

    /// Makes the names of all finished segments durable.
    pub(super) fn sync_names(&self) -> Result<()> {
        let SegmentNames { is_new, is_directory_safe } = &*self.names;
        if !is_new.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = sync_directory(&self.directory).and_then(|()| {
            if is_directory_safe.load(Ordering::Acquire) {
                return Ok(());
            }
            // The process that made the directory may have died before its name was durable.
            sync_directory(&self.plane)?;
            is_directory_safe.store(true, Ordering::Release);
            Ok(())
        });
        synced.inspect_err(|_| is_new.store(true, Ordering::Release))
    }

    pub(super) fn create(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.make_directory()?;
        let path = self.path(id);
        let opened = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        let file = opened.map_err(|error| Error::io("make", &path, error))?;
        let names = Arc::clone(&self.names);
        Ok(Box::new(UnfinishedFile { file, path, names, is_finished: false }))
    }

    pub(super) fn read(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>> {
        let path = self.path(id);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Stale,
            _ => Error::io("open", &path, error),
        })?;
        // The length is not checked yet, so the length of the file bounds it.
        let stored = file.metadata().map_err(|error| Error::io("read", &path, error))?.len();
        if offset.checked_add(length as u64).is_none_or(|end| end > stored) {
            return Err(Error::Corrupt { what: "a segment" });
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map_err(|error| Error::io("read", &path, error))?;
        Ok(bytes)
    }

    /// Returns ids and lengths of all files with the name of a segment.
    pub(super) fn list(&self) -> Result<Vec<(SegmentId, u64)>> {
        let failed = |error| Error::io("list", &self.directory, error);
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Some(id) = entry.file_name().to_str().and_then(id_of) else { continue };
            match entry.metadata() {
                Ok(meta) => found.push((id, meta.len())),
                // Another process removed the file after the listing.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }

    /// Returns the length of a segment's file.
    pub(super) fn bytes(&self, id: &SegmentId) -> Result<u64> {
        let path = self.path(id);
        match path.metadata() {
            Ok(meta) => Ok(meta.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::Stale),
            Err(error) => Err(Error::io("read", &path, error)),
        }
    }

    pub(super) fn remove(&self, id: &SegmentId) -> Result<()> {
        let path = self.path(id);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }
}

impl NewSegment for UnfinishedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| Error::io("write", &self.path, error))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io("sync", &self.path, error))?;
        self.names.is_new.store(true, Ordering::Release);
        self.finish_content()
    }

    fn finish_content(mut self: Box<Self>) -> Result<()> {
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the next compaction removes the file.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn sync_directory(directory: &Path) -> Result<()> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Error::io("sync", directory, error))
}

fn name_of(id: &SegmentId) -> String {
    id.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex).collect()
}

fn hex(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

fn id_of(name: &str) -> Option<SegmentId> {
    let id = u128::from_str_radix(name, 16).ok()?.to_be_bytes();
    (name_of(&id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_named_as_segments_are_listed() {
        let directory = tempfile::tempdir().unwrap();
        let files = SegmentFiles::of(directory.path());
        assert_eq!(files.list().unwrap(), []);
        let id = [0xa5; 16];
        let mut new = files.create(&id).unwrap();
        new.append(b"abc").unwrap();
        new.finish().unwrap();
        drop(files.create(&[1; 16]).unwrap());
        for other in ["readme", "+5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5", "A5".repeat(16).as_str()] {
            std::fs::write(directory.path().join("segments").join(other), "").unwrap();
        }
        assert_eq!(files.list().unwrap(), [(id, 3)]);
        assert_eq!(files.read(&id, 1, 2).unwrap(), b"bc");
        assert!(matches!(files.read(&id, 2, 2), Err(Error::Corrupt { .. })));
        assert!(matches!(files.read(&[1; 16], 0, 1), Err(Error::Stale)));
    }

    #[test]
    fn segments_are_removed_only_while_nobody_pins_them() {
        let directory = tempfile::tempdir().unwrap();
        let files = SegmentFiles::of(directory.path());
        let pins = [files.pin().unwrap(), files.pin().unwrap()];
        assert!(files.lock_removal().unwrap().is_none());
        drop(pins);
        let removal = files.lock_removal().unwrap();
        assert!(removal.is_some() && files.lock().unwrap().is_some());
        drop(removal);
        files.pin().unwrap();
    }

    #[test]
    fn one_compactor_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let files = SegmentFiles::of(directory.path());
        let held = files.lock().unwrap();
        assert!(held.is_some() && files.lock().unwrap().is_none());
        drop(held);
        assert!(files.lock().unwrap().is_some());
    }

    #[test]
    fn a_lock_that_was_given_up_does_not_stay_with_a_child_that_was_forked_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let files = SegmentFiles::of(directory.path());
        let removal = files.lock_file(SEGMENTS_LOCK, File::try_lock).unwrap().unwrap();
        // A child shares the open file like this between its fork and the start of its program.
        let inherited = removal.file.try_clone().unwrap();
        assert!(files.lock_removal().unwrap().is_none());
        drop(removal);
        assert!(files.lock_removal().unwrap().is_some());
        drop(inherited);
    }
}
