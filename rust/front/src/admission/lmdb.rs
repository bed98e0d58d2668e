//! The number of the last transaction of an LMDB environment, read from its file.
//!
//! LMDB makes a transaction visible by writing one of two pages at the beginning of the file, in
//! turns, with the transaction's number in it. Both the pages' form and their places are those of
//! LMDB 0.9 on a little-endian machine, whatever program writes it; any other file has no version.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Beside the environment: what `accounts.usage_span` writes.
const USAGE_FILE: &str = "usage.span";
const PAGE_HEAD_BYTES: u64 = 16;
const MAGIC: u32 = 0xBEEF_C0DE;
const FORMAT: u32 = 1;
/// Place of the size of a page: the first word of the first of two records of 48 bytes, behind
/// magic, format, an address and the size of the map.
const PAGE_SIZE_OFFSET: u64 = PAGE_HEAD_BYTES + 24;
/// Place of the number of the transaction: behind both records and the number of the last page.
const TRANSACTION_OFFSET: u64 = PAGE_SIZE_OFFSET + 2 * 48 + 8;

/// A moment in the life of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreVersion {
    /// Device of the file.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its length: what is cut off makes no transaction.
    pub bytes: u64,
    /// Instant of its last change, seconds and nanoseconds: what was cut off may be filled up since.
    pub changed_at: (i64, i64),
    /// Number of the last transaction in it.
    pub transaction: u64,
}

/// States of a store that are one to whoever decides: only usage was written between them.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: StoreVersion,
    last: StoreVersion,
}

impl Span {
    /// True where what decides is as it was in `other`.
    #[must_use]
    pub fn continues(&self, other: &Self) -> bool {
        self.first == other.first
    }

    /// True where one who saw this transaction last saw what decides.
    #[must_use]
    pub fn has(&self, transaction: u64) -> bool {
        (self.first.transaction..=self.last.transaction).contains(&transaction)
    }
}

impl From<StoreVersion> for Span {
    /// The span of a state that is like no other.
    fn from(state: StoreVersion) -> Self {
        Self { first: state, last: state }
    }
}

/// The data file of an environment. Safe to share between threads.
#[derive(Debug)]
pub struct LmdbFile {
    path: PathBuf,
    /// The file in which whoever writes usage says which span that belongs to.
    usage: PathBuf,
    open: RwLock<Option<Open>>,
    seen: RwLock<Option<Span>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    device: u64,
    inode: u64,
    page_bytes: u64,
}

impl LmdbFile {
    /// The file at `path`, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let usage = path.with_file_name(USAGE_FILE);
        Self { path, usage, open: RwLock::new(None), seen: RwLock::new(None) }
    }

    /// The span that the store is in; `None` where there is none at the path.
    ///
    /// A state of which nobody says otherwise is a span of its own.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let now = self.version()?;
        let seen = *self.seen.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.filter(|seen| seen.last == now) {
            return Some(seen);
        }
        let mut span = Span::from(now);
        match self.said() {
            Some([first, last]) if state_of(&now) == last => {
                let [transaction, bytes, changed_seconds, changed_nanoseconds] = first;
                let changed_at = (changed_seconds.cast_signed(), changed_nanoseconds.cast_signed());
                span.first = StoreVersion { bytes, changed_at, transaction, ..now };
            }
            // It may be about to be said.
            _ => return Some(span),
        }
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Some(span);
        Some(span)
    }

    /// The first and the last state of the last span that was said.
    fn said(&self) -> Option<[[u64; 4]; 2]> {
        let text = fs::read_to_string(&self.usage).ok()?;
        let words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        let words: [u64; 8] = words.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let [first, last] = words.as_chunks().0 else { return None };
        Some([*first, *last])
    }

    /// The version of what is at the path now; `None` where that is no environment.
    ///
    /// No commit is missed: a transaction that anybody may have read has its number in the file.
    #[must_use]
    pub fn version(&self) -> Option<StoreVersion> {
        let there = fs::metadata(&self.path).ok()?;
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*open
            && (open.device, open.inode) == (there.dev(), there.ino())
        {
            return open.version(&there).ok();
        }
        drop(open);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        let new = Open::at(&self.path).ok()?;
        let version = new.version(&there).ok();
        *open = Some(new);
        version
    }
}

/// A state as it is said.
fn state_of(version: &StoreVersion) -> [u64; 4] {
    let (seconds, nanoseconds) = version.changed_at;
    [version.transaction, version.bytes, seconds.cast_unsigned(), nanoseconds.cast_unsigned()]
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let stat = file.metadata()?;
        let word = |offset| {
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, offset).map(|()| u32::from_le_bytes(bytes))
        };
        let is_known = word(PAGE_HEAD_BYTES)? == MAGIC && word(PAGE_HEAD_BYTES + 4)? == FORMAT;
        let page_bytes = u64::from(word(PAGE_SIZE_OFFSET)?);
        if !is_known || !page_bytes.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { device: stat.dev(), inode: stat.ino(), page_bytes, file })
    }

    fn version(&self, there: &Metadata) -> io::Result<StoreVersion> {
        // Read, not mapped: whoever cuts the file short must not end this process.
        let number = |page_start| {
            let mut bytes = [0; 8];
            let read = self.file.read_exact_at(&mut bytes, page_start + TRANSACTION_OFFSET);
            read.map(|()| u64::from_le_bytes(bytes))
        };
        let transaction = number(0)?.max(number(self.page_bytes)?);
        Ok(StoreVersion {
            device: self.device,
            inode: self.inode,
            bytes: there.len(),
            changed_at: (there.ctime(), there.ctime_nsec()),
            transaction,
        })
    }
}
