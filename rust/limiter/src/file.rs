//! The file itself: who made it for which rings, and the lock that makes callers take turns.
//!
//! Header (80 bytes, little-endian): magic 8, boot 36 and 4 of zeros, then admitted instants,
//! failures, buckets and seed, 8 bytes each. The heads of all places follow at 4096, then the
//! rings of all places. The file is sparse: a place takes room once a client has it.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Rules;
use super::clock::{BOOT_BYTES, boot};
use super::error::{Error, Result};
use super::ring::INSTANT_BYTES;
use super::table::{HEAD_BYTES, WAYS};

const MAGIC: [u8; 8] = *b"FCLIMIT1";
const HEADER_BYTES: usize = 80;

/// Where the heads begin: a page, so that none straddles two.
const HEADS_OFFSET: u64 = 4_096;

/// What all places together may take: about 195,000 clients at the default limits.
const PLACES_BYTES_MAX: u64 = 64 << 20;

/// Buckets there are even where limits are so high that they take more.
const BUCKETS_MIN: u64 = 8;

/// What lies where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Admitted requests remembered of a client.
    pub(super) admitted_len: u64,
    /// Failures remembered of a client: one less than lock it out.
    pub(super) failed_len: u64,
    pub(super) buckets: u64,
    /// Keeps anybody from choosing addresses that share a bucket.
    pub(super) seed: u64,
}

impl Layout {
    fn new(rules: Rules, seed: u64) -> Self {
        let admitted_len = u64::from(rules.requests_per_minute);
        let failed_len = u64::from(rules.lockout_failures.saturating_sub(1));
        let place_bytes = HEAD_BYTES as u64 + (admitted_len + failed_len) * INSTANT_BYTES;
        let buckets = (PLACES_BYTES_MAX / (place_bytes * WAYS as u64)).max(BUCKETS_MIN);
        Self { admitted_len, failed_len, buckets, seed }
    }

    pub(super) fn clients_max(&self) -> u64 {
        self.buckets * WAYS as u64
    }

    pub(super) fn head_offset(place: u64) -> u64 {
        HEADS_OFFSET + place * HEAD_BYTES as u64
    }

    pub(super) fn rings_offset(&self, place: u64) -> u64 {
        let rings_bytes = (self.admitted_len + self.failed_len) * INSTANT_BYTES;
        Self::head_offset(self.clients_max()) + place * rings_bytes
    }

    pub(super) fn failed_offset(&self, place: u64) -> u64 {
        self.rings_offset(place) + self.admitted_len * INSTANT_BYTES
    }

    fn header(&self, boot: &[u8; BOOT_BYTES]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..8 + BOOT_BYTES].copy_from_slice(boot);
        let words = [self.admitted_len, self.failed_len, self.buckets, self.seed];
        for (place, word) in bytes[48..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// The open file of one process.
#[derive(Debug)]
pub(super) struct Shared {
    file: File,
    path: PathBuf,
    layout: Layout,
    /// The lock on the file is the process's: its threads take turns here.
    turn: Mutex<()>,
    process_id: u32,
}

impl Shared {
    pub(super) fn open(path: &Path, rules: Rules) -> Result<Self> {
        let opened = open(path, rules).map_err(|error| Error::io("open", path, error));
        let (file, layout) = opened?;
        let process_id = std::process::id();
        Ok(Self { file, path: path.to_owned(), layout, turn: Mutex::new(()), process_id })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Waits for the file. The kernel lets go of it for a process that dies.
    pub(super) fn hold(&self) -> Result<Held<'_>> {
        if std::process::id() != self.process_id {
            return Err(Error::Forked);
        }
        // A panic of another thread left the file as any two calls may: whole.
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Lock::take(&self.file)
            .map(|lock| Held { lock, _turn: turn })
            .map_err(|error| Error::io("lock", &self.path, error))
    }
}

/// The file while nobody else has it.
pub(super) struct Held<'f> {
    lock: Lock<'f>,
    _turn: MutexGuard<'f, ()>,
}

impl<'f> Held<'f> {
    pub(super) fn file(&self) -> &'f File {
        self.lock.0
    }
}

struct Lock<'f>(&'f File);

impl<'f> Lock<'f> {
    fn take(file: &'f File) -> io::Result<Self> {
        loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome.map(|()| Self(file)),
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // It fails for no lock that was taken, and closing the file would end it as well.
        let _ = self.0.unlock();
    }
}

/// The file at `path` for these rules and this boot. One of others is taken away, not rewritten:
/// a process that has it open still keeps what it counts by.
fn open(path: &Path, rules: Rules) -> io::Result<(File, Layout)> {
    let boot = boot()?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    loop {
        let file = options.open(path)?;
        let lock = Lock::take(&file)?;
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

/// Whether `path` still names `file`: another process may have taken it away meanwhile.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fills an empty file in, the header last: without it the file is nobody's.
fn make(file: &File, rules: Rules, boot: &[u8; BOOT_BYTES]) -> io::Result<Layout> {
    let layout = Layout::new(rules, RandomState::new().hash_one(MAGIC));
    file.set_len(layout.rings_offset(layout.clients_max()))?;
    file.write_all_at(&layout.header(boot), 0)?;
    Ok(layout)
}

/// The layout of a file that was made for these rules in this boot, and is all there.
fn read_layout(file: &File, rules: Rules, boot: &[u8; BOOT_BYTES]) -> io::Result<Option<Layout>> {
    let mut header = [0; HEADER_BYTES];
    let length = file.metadata()?.len();
    if length < HEADS_OFFSET {
        return Ok(None);
    }
    file.read_exact_at(&mut header, 0)?;
    let seed = header.last_chunk().map_or(0, |seed| u64::from_le_bytes(*seed));
    let layout = Layout::new(rules, seed);
    let whole = length == layout.rings_offset(layout.clients_max());
    Ok((whole && header == layout.header(boot)).then_some(layout))
}
