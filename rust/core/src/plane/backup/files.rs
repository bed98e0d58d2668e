//! Files of a backup: written once, hashed on the way, and checked when they are read.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::model::error::{Error, Result};

/// A SHA-256.
pub(super) type Hash = [u8; 32];

pub(super) const DAMAGED: Error = Error::Corrupt { what: "a file of the backup" };
/// First bytes of a file of blocks: magic and version.
pub(super) const LOG_MAGIC: &[u8; 9] = b"fleetlog\x01";
/// First bytes of a file of pages of names: magic and version.
pub(super) const NAMES_MAGIC: &[u8; 9] = b"fleetnam\x01";
/// Folder of the segments.
pub(super) const SEGMENTS: &str = "segments";
/// Bytes of a file that are in memory at once: few enough to stay in a CPU cache from one use to
/// the next.
pub(super) const PIECE_BYTES: usize = 1 << 18;
const MAGIC_LEN: usize = 9;

/// Returns offset and length of each piece of a file of `bytes` bytes. Example: 600,000 bytes are
/// two pieces of 262,144 bytes and one of 75,712.
pub(super) fn pieces_of(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(PIECE_BYTES).map(move |offset| {
        let rest = usize::try_from(bytes - offset).unwrap_or(PIECE_BYTES);
        (offset, rest.min(PIECE_BYTES))
    })
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFile {
    /// Path in the backup folder of the plane. Example: `segments/` and 32 hex digits.
    pub name: String,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
}

/// SHA-256 of the bytes that are added.
pub(super) struct Hasher(Context);

impl Hasher {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds a part of any length. Its length goes first, so that one part cannot pass for two.
    pub(super) fn add_part(&mut self, bytes: &[u8]) {
        self.add(&(bytes.len() as u64).to_le_bytes());
        self.add(bytes);
    }

    pub(super) fn finish(self) -> Hash {
        let mut hash = Hash::default();
        hash.copy_from_slice(self.0.finish().as_ref());
        hash
    }
}

/// Returns the SHA-256 of `bytes`.
pub(super) fn hash_of(bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.add(bytes);
    hasher.finish()
}

/// A file or folder that is written but not durable yet.
pub(super) struct UnsyncedPath {
    path: PathBuf,
    file: File,
}

impl UnsyncedPath {
    /// Opens a folder, whose names are to become durable.
    pub(super) fn folder(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| Error::io("sync", &self.path, error))
    }
}

/// Makes a file of a backup. Replaces a file that an unfinished backup left.
pub(super) fn create(path: &Path) -> Result<File> {
    // Remove the old file, never open it: it may be a link to a file of the plane.
    remove(path)?;
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| Error::io("make", path, error))
}

/// A file of a backup that is being written.
pub(super) struct BackupWriter {
    name: String,
    path: PathBuf,
    file: BufWriter<File>,
    hasher: Hasher,
    bytes: u64,
}

impl BackupWriter {
    /// Begins the file `name` of `folder`.
    pub(super) fn create(folder: &Path, name: String) -> Result<Self> {
        let path = folder.join(&name);
        let file = BufWriter::new(create(&path)?);
        Ok(Self { name, path, file, hasher: Hasher::new(), bytes: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.add(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes a record: its length, its bytes.
    pub(super) fn write_record(&mut self, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len());
        let length = length.map_err(|_| Error::Corrupt { what: "a record's length" })?;
        self.write(&length.to_le_bytes())?;
        self.write(bytes)
    }

    /// Ends the file. It is durable after a sync of the file and of its folder.
    pub(super) fn finish(self) -> Result<(SavedFile, UnsyncedPath)> {
        let Self { name, path, file, hasher, bytes } = self;
        let file = file.into_inner();
        let file = file.map_err(|error| Error::io("write", &path, error.into_error()))?;
        Ok((SavedFile { name, bytes, sha256: hasher.finish() }, UnsyncedPath { path, file }))
    }
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Reads a file of a backup from its beginning. Compares the content with the hash at the end.
pub(super) struct SavedReader<'a> {
    path: PathBuf,
    file: BufReader<File>,
    saved: &'a SavedFile,
    hasher: Hasher,
    rest: u64,
}

impl<'a> SavedReader<'a> {
    pub(super) fn open(folder: &Path, saved: &'a SavedFile) -> Result<Self> {
        let path = folder.join(&saved.name);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => DAMAGED,
            _ => Error::io("open", &path, error),
        })?;
        let file = BufReader::new(file);
        Ok(Self { path, file, saved, hasher: Hasher::new(), rest: saved.bytes })
    }

    /// Opens a file as [`Self::open`] does, and checks that it begins with `magic` and a known
    /// version.
    pub(super) fn open_marked(
        folder: &Path,
        saved: &'a SavedFile,
        magic: &[u8; MAGIC_LEN],
    ) -> Result<Self> {
        let mut reader = Self::open(folder, saved)?;
        if reader.read(MAGIC_LEN)? == magic { Ok(reader) } else { Err(DAMAGED) }
    }

    /// Reads the next `length` bytes.
    pub(super) fn read(&mut self, length: usize) -> Result<Vec<u8>> {
        self.rest = self.rest.checked_sub(length as u64).ok_or(DAMAGED)?;
        let mut bytes = vec![0; length];
        self.file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => DAMAGED,
            _ => Error::io("read", &self.path, error),
        })?;
        self.hasher.add(&bytes);
        Ok(bytes)
    }

    /// Reads the next bytes, at most `length`. Returns `None` at the end, after the hash was
    /// checked.
    pub(super) fn piece(&mut self, length: usize) -> Result<Option<Vec<u8>>> {
        if self.rest == 0 {
            self.check_end()?;
            return Ok(None);
        }
        self.read(usize::try_from(self.rest).map_or(length, |rest| rest.min(length))).map(Some)
    }

    /// Reads the next record. Returns `None` at the end, after the hash was checked.
    pub(super) fn record(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(length) = self.piece(4)? else { return Ok(None) };
        let length = u32::from_le_bytes(length.try_into().map_err(|_| DAMAGED)?);
        self.read(usize::try_from(length).map_err(|_| DAMAGED)?).map(Some)
    }

    fn check_end(&mut self) -> Result<()> {
        let mut beyond = [0];
        let read = self.file.read(&mut beyond);
        let read = read.map_err(|error| Error::io("read", &self.path, error))?;
        let hasher = std::mem::replace(&mut self.hasher, Hasher::new());
        if read == 0 && hasher.finish() == self.saved.sha256 { Ok(()) } else { Err(DAMAGED) }
    }
}

/// Reads all of a small file.
pub(super) fn read_whole(folder: &Path, file: &SavedFile) -> Result<Vec<u8>> {
    let mut reader = SavedReader::open(folder, file)?;
    let mut bytes = Vec::new();
    while let Some(piece) = reader.piece(PIECE_BYTES)? {
        bytes.extend(piece);
    }
    Ok(bytes)
}

/// Returns the first and last position in a file of this kind, taken from its name. Example: 1 and
/// 40 from the name `3-1-40.log`.
pub(super) fn range_of(name: &str, kind: &str) -> Option<(u64, u64)> {
    let (range, suffix) = name.rsplit_once('.')?;
    let mut numbers = range.splitn(3, '-').skip(1).map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (suffix == kind && first <= last).then_some((first, last))
}
