//! Reads the counts of a store from its files alone: without a lock, a map, a sync or a wait for
//! another process. It is cheap enough to run for every tenant with each scrape of the metrics.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::{
    CORRUPT, FREE_TREE_AT, IS_TREE, MAIN_TREE_AT, NO_ROOT, PAGE_COUNTS_AT, ROOT_AT, TRANSACTION_AT,
    TREE_BYTES, bytes_at, leaf_entry, u16_at, u64_at,
};
use super::opening::plane_path;
use super::records;
use super::store::LmdbStore;
use crate::model::error::{Error, Result};
use crate::storage::store::entries::StoreCounts;
use crate::storage::store::interface::Space;
use crate::storage::store::log;
use crate::storage::store::peeked::PeekedCounts;
use crate::storage::store::segment_files::SegmentFiles;

/// Most snapshots that are tried. A snapshot takes microseconds, and is spoiled if two commits
/// happen during it.
const SNAPSHOTS_MAX: u32 = 32;
const PAGE_BYTES_MAX: u16 = 1 << 15;
const HEAD_BYTES: usize = 256;

impl LmdbStore {
    /// Returns the counts of the store in `directory`, which any process may have open.
    ///
    /// # Errors
    /// Returns [`Error::Missing`] if there is no store, [`Error::Corrupt`] if its file is damaged,
    /// and [`Error::Io`] if a file cannot be read.
    pub fn peek(directory: &Path) -> Result<PeekedCounts> {
        let path = plane_path(directory);
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Error::missing(&path),
            _ => Error::io("read", &path, error),
        };
        let file = File::open(&path).map_err(failed)?;
        let PeekedHead { head, used_bytes } = Pages::of(&file)?.counts()?;
        let (counts, log_bytes) = match head.log {
            Some(log) => (log::peek(directory, log)?, log::file_bytes(directory)?),
            None => (StoreCounts::default(), 0),
        };
        let segments = SegmentFiles::of(directory).list()?;
        let segment_bytes: u64 = segments.iter().map(|(_, bytes)| bytes).sum();
        let file_bytes = file.metadata().map_err(failed)?.len();
        let tables = used_bytes.min(file_bytes);
        let (log, free) = (log_bytes, file_bytes - tables);
        let space = Space { log, segments: segment_bytes, tables, free };
        let (counts, generation) = (head.counts_of(counts), head.generation);
        let series = head.next_ids.series.into();
        let segments = segments.len() as u64;
        Ok(PeekedCounts { counts, generation, series, segments, space })
    }
}

/// Head record, and bytes of all pages in use, as of one commit.
struct PeekedHead {
    head: records::HeadRecord,
    used_bytes: u64,
}

struct Pages<'f> {
    file: &'f File,
    page_bytes: usize,
}

impl<'f> Pages<'f> {
    fn of(file: &'f File) -> Result<Self> {
        let mut pages = Self { file, page_bytes: HEAD_BYTES };
        // LMDB keeps the page size at the offset of the flags of the free tree.
        let page_bytes = u16_at(&pages.read(0, HEAD_BYTES)?, FREE_TREE_AT)?;
        if !page_bytes.is_power_of_two() || !(512..=PAGE_BYTES_MAX).contains(&page_bytes) {
            return Err(CORRUPT);
        }
        pages.page_bytes = page_bytes.into();
        Ok(pages)
    }

    /// Returns the state as of the last commit.
    fn counts(&self) -> Result<PeekedHead> {
        let mut found = Err(Error::Stale);
        for _ in 0..SNAPSHOTS_MAX {
            let head = self.head()?;
            let transaction = u64_at(&head, TRANSACTION_AT)?;
            found = self.counts_at(&head);
            // The pages of a commit are not overwritten before the third commit after it. A page
            // that seems damaged may have been read while it was being written.
            if found.is_ok() && u64_at(&self.head()?, TRANSACTION_AT)? <= transaction + 1 {
                return found;
            }
        }
        found
    }

    fn counts_at(&self, head: &[u8]) -> Result<PeekedHead> {
        let tables = self.root(bytes_at(head, MAIN_TREE_AT, TREE_BYTES)?)?.ok_or(CORRUPT)?;
        let table = |name: &[u8]| match leaf_entry(&tables, name)? {
            Some((IS_TREE, record)) => Ok(Some(bytes_at(record, 0, TREE_BYTES)?)),
            None => Ok(None),
            Some(_) => Err(CORRUPT),
        };
        let mut head = records::HeadRecord::default();
        if let Some(page) = self.root(table(b"meta")?.ok_or(CORRUPT)?)?
            && let Some((_, record)) = leaf_entry(&page, records::HEAD)?
        {
            head = records::HeadRecord::decode(record)?;
        }
        let mut used_pages = 0;
        for name in [b"meta".as_slice(), b"names"] {
            let Some(record) = table(name)? else { continue };
            for at in PAGE_COUNTS_AT {
                used_pages += u64_at(record, at)?;
            }
        }
        let used_bytes = used_pages.saturating_mul(self.page_bytes as u64);
        Ok(PeekedHead { head, used_bytes })
    }

    /// Returns the newer of the two head pages.
    fn head(&self) -> Result<Vec<u8>> {
        let heads = [self.read(0, HEAD_BYTES)?, self.read(1, HEAD_BYTES)?];
        let [first, second] = heads;
        let is_newer = u64_at(&second, TRANSACTION_AT)? > u64_at(&first, TRANSACTION_AT)?;
        Ok(if is_newer { second } else { first })
    }

    /// Returns the root page of a tree, or `None` if the tree is empty.
    fn root(&self, record: &[u8]) -> Result<Option<Vec<u8>>> {
        match u64_at(record, ROOT_AT)? {
            NO_ROOT => Ok(None),
            root => self.read(root, self.page_bytes).map(Some),
        }
    }

    fn read(&self, page: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let at = page.checked_mul(self.page_bytes as u64).ok_or(CORRUPT)?;
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => CORRUPT,
            _ => Error::Io { what: "read the store's database".to_owned(), source },
        };
        self.file.read_exact_at(&mut bytes, at).map_err(failed)?;
        Ok(bytes)
    }
}
