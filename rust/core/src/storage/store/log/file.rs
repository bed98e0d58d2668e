//! The files of a log. A file begins with a head and has a part of the log. Positions count the
//! bytes of all files, heads included. A file is named by the position of its first byte.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::tail::Tail;
use crate::model::error::{Error, Result};
use crate::storage::store::entries::StoreCounts;

/// Bytes before the first frame of a file: a sector, which a disk writes whole or not at all.
pub(super) const HEAD_BYTES: usize = 512;
const MAGIC: [u8; 8] = *b"fleetlgf";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = HEAD_BYTES - 4;
/// Name of the directory next to the plane file.
pub(super) const DIRECTORY: &str = "log";
/// Name of a file until its content is complete and durable.
const NEW_NAME: &str = "new";
pub(super) const CORRUPT: Error = Error::Corrupt { what: "the log" };

/// A file of a log.
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    /// Id of the log.
    pub(super) log: u64,
    /// Position of the first byte of the file.
    pub(super) base: u64,
    /// State of the log at the begin of the first frame.
    pub(super) start: Tail,
}

impl LogFile {
    /// Makes the file that continues behind `tail`. Its name and its head are durable when this
    /// returns. Calls `before_name` once its content is durable.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] if no file got the name, and [`Error::Io`] if it may have the
    /// name.
    pub(super) fn create(
        directory: &Path,
        log: u64,
        tail: &Tail,
        before_name: impl FnOnce(),
    ) -> Result<Self> {
        let new = directory.join(NEW_NAME);
        remove_new(directory)?;
        let created = || {
            let mut options = OpenOptions::new();
            let file = options.create_new(true).read(true).write(true).mode(0o600).open(&new)?;
            file.write_all_at(&encode_head(log, tail), 0)?;
            file.sync_data()?;
            Ok(file)
        };
        let file = created().map_err(|error| Error::io("make", &new, error))?;
        before_name();
        let path = path_of(directory, tail.end);
        let failed = |source| Error::Io { what: format!("name {}", path.display()), source };
        std::fs::rename(&new, &path).map_err(failed)?;
        sync_directory(directory)?;
        Ok(Self { file, path, log, base: tail.end, start: after_head(tail) })
    }

    /// Opens the file that begins at `base`.
    ///
    /// # Errors
    /// Returns [`Error::Stale`] if the file does not exist, and [`Error::Corrupt`] if it is not a
    /// file of this log.
    pub(super) fn open(directory: &Path, log: u64, base: u64) -> Result<Self> {
        let path = path_of(directory, base);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Stale,
            _ => Error::io("open", &path, error),
        })?;
        let mut opened = Self { file, path, log, base, start: Tail::default() };
        let head = opened.read_up_to(base, HEAD_BYTES)?;
        opened.start = decode_head(log, base, &head).ok_or(CORRUPT)?;
        Ok(opened)
    }

    /// Returns the offset of a position in this file. Example: position 1,000 is at offset 100 of
    /// the file that begins at position 900.
    pub(super) fn offset(&self, position: u64) -> u64 {
        position.saturating_sub(self.base)
    }

    /// Returns the length of the file in bytes, reserved space included.
    pub(super) fn bytes(&self) -> Result<u64> {
        let meta = self.file.metadata();
        Ok(meta.map_err(|error| Error::io("read", &self.path, error))?.len())
    }

    /// Reads `length` bytes from `position` on, or fewer if the file ends before.
    pub(super) fn read_up_to(&self, position: u64, length: usize) -> Result<Vec<u8>> {
        let offset = self.offset(position);
        let left = self.bytes()?.saturating_sub(offset);
        let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &self.path, error)),
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// Writes `bytes`. The first `needed` bytes must be written. The rest reserves space, and may
    /// be left out.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] if the disk has no space for the needed bytes, and
    /// [`Error::Io`].
    pub(super) fn write(&self, position: u64, bytes: &[u8], needed: usize) -> Result<()> {
        let mut done = 0;
        while done < needed {
            match self.file.write_at(&bytes[done..], self.offset(position) + done as u64) {
                Ok(0) => return Err(Error::DiskFull),
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("write", &self.path, error)),
            }
        }
        Ok(())
    }

    /// Makes all written bytes durable.
    ///
    /// # Errors
    /// Returns [`Error::Io`], also if no space is left. The bytes may be stored all the same.
    pub(super) fn sync(&self) -> Result<()> {
        let failed = |source| Error::Io { what: format!("sync {}", self.path.display()), source };
        self.file.sync_data().map_err(failed)
    }
}

fn after_head(tail: &Tail) -> Tail {
    Tail { end: tail.end + HEAD_BYTES as u64, ..*tail }
}

fn encode_head(log: u64, tail: &Tail) -> Vec<u8> {
    let Tail { end, sequence, counts, chain } = *tail;
    let StoreCounts { rows, values, rejected, batches, log_bytes } = counts;
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(chain.to_le_bytes());
    let numbers = [log, end, sequence, rows, values, rejected, batches, log_bytes];
    head.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    head.resize(CHECKSUM_AT, 0);
    head.extend(crc32fast::hash(&head).to_le_bytes());
    head
}

fn decode_head(log: u64, base: u64, head: &[u8]) -> Option<Tail> {
    let (content, checksum) = head.split_last_chunk::<4>()?;
    let is_whole = crc32fast::hash(content).to_le_bytes() == *checksum;
    if content.len() != CHECKSUM_AT || !is_whole {
        return None;
    }
    let (magic, rest) = content.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (chain, rest) = rest.split_first_chunk::<4>()?;
    let mut numbers = rest.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut next = || numbers.next();
    let is_ours = *magic == MAGIC
        && u32::from_le_bytes(*version) == VERSION
        && next()? == log
        && next()? == base;
    let sequence = next()?;
    let (rows, values, rejected) = (next()?, next()?, next()?);
    let (batches, log_bytes) = (next()?, next()?);
    let counts = StoreCounts { rows, values, rejected, batches, log_bytes };
    let chain = u32::from_le_bytes(*chain);
    is_ours.then_some(after_head(&Tail { end: base, sequence, counts, chain }))
}

/// Makes an empty directory for a log.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the directory has a log that was ever used, and the errors of the
/// machine.
pub(super) fn make_directory(directory: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // An earlier creation was cut off, unless the log has blocks.
            remove_new(directory)?;
            for (base, bytes) in list(directory)? {
                if base != 0 || bytes > HEAD_BYTES as u64 {
                    return Err(CORRUPT);
                }
                remove(directory, base)?;
            }
        }
        Err(error) => return Err(Error::io("make", directory, error)),
    }
    directory.parent().map_or(Ok(()), sync_directory)
}

/// Returns positions and lengths of all files, ascending.
pub(super) fn list(directory: &Path) -> Result<Vec<(u64, u64)>> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => CORRUPT,
        _ => Error::io("list", directory, error),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(base) = entry.file_name().to_str().and_then(base_of) else { continue };
        match entry.metadata() {
            Ok(meta) => found.push((base, meta.len())),
            // Another process removed the file after the listing.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("list", directory, error)),
        }
    }
    found.sort_unstable();
    Ok(found)
}

pub(super) fn remove(directory: &Path, base: u64) -> Result<()> {
    remove_path(&path_of(directory, base))
}

/// Removes a file that has not got its name because of a crash.
pub(super) fn remove_new(directory: &Path) -> Result<()> {
    remove_path(&directory.join(NEW_NAME))
}

fn remove_path(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// # Errors
/// Returns [`Error::Io`], also if no space is left. Names may be stored all the same.
pub(super) fn sync_directory(directory: &Path) -> Result<()> {
    let failed = |source| Error::Io { what: format!("sync {}", directory.display()), source };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

pub(super) fn path_of(directory: &Path, base: u64) -> PathBuf {
    directory.join(format!("{base:016x}.log"))
}

fn base_of(name: &str) -> Option<u64> {
    let base = u64::from_str_radix(name.strip_suffix(".log")?, 16).ok()?;
    (format!("{base:016x}.log") == name).then_some(base)
}
