//! The file: its owner's rules and boot, and the lock that makes callers take turns.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{BOOT_BYTES, boot};
use crate::error::{LimiterError, LimiterResult};
use crate::layout::{FileLayout, HEADER_BYTES, HEADS_OFFSET};
use crate::rules::LimiterRules;

/// The open file of one process.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    path: PathBuf,
    layout: FileLayout,
    /// The lock on the file belongs to the process, so the threads of the process take turns here.
    turn: Mutex<()>,
    process_id: u32,
}

impl SharedFile {
    pub(crate) fn open(path: &Path, rules: LimiterRules) -> LimiterResult<Self> {
        let opened = open(path, rules).map_err(|error| LimiterError::io("open", path, error));
        let (file, layout) = opened?;
        let process_id = std::process::id();
        Ok(Self { file, path: path.to_owned(), layout, turn: Mutex::new(()), process_id })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn layout(&self) -> FileLayout {
        self.layout
    }

    /// Waits for the lock on the file. The kernel frees the lock of a process that dies.
    pub(crate) fn hold(&self) -> LimiterResult<FileGuard<'_>> {
        if std::process::id() != self.process_id {
            return Err(LimiterError::Forked);
        }
        // The file is sound even after a panic of another thread, because each call leaves it
        // sound.
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        FlockGuard::take(&self.file)
            .map(|lock| FileGuard { lock, _turn: turn })
            .map_err(|error| LimiterError::io("lock", &self.path, error))
    }
}

/// The file while this thread holds its lock.
pub(crate) struct FileGuard<'f> {
    lock: FlockGuard<'f>,
    _turn: MutexGuard<'f, ()>,
}

impl<'f> FileGuard<'f> {
    pub(crate) fn file(&self) -> &'f File {
        self.lock.0
    }
}

struct FlockGuard<'f>(&'f File);

impl<'f> FlockGuard<'f> {
    fn take(file: &'f File) -> io::Result<Self> {
        loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome.map(|()| Self(file)),
            }
        }
    }
}

impl Drop for FlockGuard<'_> {
    fn drop(&mut self) {
        // Unlocking a held lock does not fail, and closing the file would end the lock as well.
        let _ = self.0.unlock();
    }
}

/// Opens the file at `path` for these rules and this boot. A file of other rules is removed, not
/// rewritten: a process that has it open keeps its counts.
fn open(path: &Path, rules: LimiterRules) -> io::Result<(File, FileLayout)> {
    let boot = boot()?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    loop {
        let file = options.open(path)?;
        let lock = FlockGuard::take(&file)?;
        if !is_at(&file, path)? {
            continue;
        }
        let layout = if file.metadata()?.len() == 0 {
            make(&file, rules, &boot)?
        } else if let Some(layout) = read_layout(&file, rules, &boot)? {
            layout
        } else {
            std::fs::remove_file(path)?;
            continue;
        };
        drop(lock);
        return Ok((file, layout));
    }
}

/// Returns true if `path` still names `file`. Another process may have removed the file in the
/// meantime.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fills in an empty file. The header is written last: without a header, no process uses the file.
fn make(file: &File, rules: LimiterRules, boot: &[u8; BOOT_BYTES]) -> io::Result<FileLayout> {
    let layout = FileLayout::new(rules, RandomState::new().hash_one(()));
    file.set_len(layout.rings_offset(layout.clients_max()))?;
    file.write_all_at(&layout.header(boot), 0)?;
    Ok(layout)
}

/// Returns the layout of a complete file that was made for these rules in this boot, or `None` for
/// other files.
fn read_layout(
    file: &File,
    rules: LimiterRules,
    boot: &[u8; BOOT_BYTES],
) -> io::Result<Option<FileLayout>> {
    let mut header = [0; HEADER_BYTES];
    let length = file.metadata()?.len();
    if length < HEADS_OFFSET {
        return Ok(None);
    }
    file.read_exact_at(&mut header, 0)?;
    let seed = header.last_chunk().map_or(0, |seed| u64::from_le_bytes(*seed));
    let layout = FileLayout::new(rules, seed);
    let whole = length == layout.rings_offset(layout.clients_max());
    Ok((whole && header == layout.header(boot)).then_some(layout))
}
