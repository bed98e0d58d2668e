//! The page check: every page of an LMDB file is checked before the file is used.
//!
//! LMDB trusts its pages. A damaged page sends it beyond its map, which ends the process and with
//! it every tenant's requests. So before a file is used, each page of its trees is read and checked
//! against the format. These reads use the file, not the map. The values in the trees are sealed,
//! and are checked when they are read.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::file::{
    BRANCH, CORRUPT, FREE_TREE_AT, HEADER_BYTES, IS_TREE, KINDS, LAST_PAGE_AT, LEAF, MAIN_TREE_AT,
    NO_ROOT, NODE_BYTES, ON_OVERFLOW_PAGES, OVERFLOW, ROOT_AT, TRANSACTION_AT, TREE_BYTES,
    bytes_at, u16_at, u64_at,
};
use crate::model::error::{Error, Result};

/// Greatest depth of a tree. LMDB keeps the path to a page in an array of this length.
const DEPTH_MAX: usize = 32;

/// Reads each page of each tree as of `transaction`. The caller holds a snapshot of the
/// transaction, and the transaction may have no page after `last_page_max`.
///
/// # Errors
/// Returns [`Error::Stale`] if the head page was overwritten, [`Error::Corrupt`] if a page is
/// damaged, and [`Error::Io`] if the file cannot be read.
pub(super) fn check(
    file: &File,
    page_bytes: usize,
    transaction: u64,
    last_page_max: u64,
) -> Result<()> {
    let mut walk = Walk { file, page_bytes, last_page: 1, seen: Vec::new() };
    let head = walk.read(transaction % 2, page_bytes)?;
    if u64_at(&head, TRANSACTION_AT)? != transaction {
        return Err(Error::Stale);
    }
    walk.last_page = u64_at(&head, LAST_PAGE_AT)?;
    if walk.last_page > last_page_max {
        return Err(CORRUPT);
    }
    walk.seen = vec![0; usize::try_from(walk.last_page / 64 + 1).map_err(|_| CORRUPT)?];
    walk.tree(bytes_at(&head, MAIN_TREE_AT, TREE_BYTES)?, &mut Walk::named_tree)?;
    walk.tree(bytes_at(&head, FREE_TREE_AT, TREE_BYTES)?, &mut Walk::free_pages)
}

/// Work done with each value of a leaf.
type Visit<'v, 'f> = &'v mut dyn FnMut(&mut Walk<'f>, LeafValue<'_>) -> Result<()>;

#[derive(Clone, Copy)]
struct LeafValue<'a> {
    is_tree: bool,
    bytes: &'a [u8],
    /// First page and length of a value on overflow pages.
    overflow: Option<(u64, usize)>,
}

struct Walk<'f> {
    file: &'f File,
    page_bytes: usize,
    last_page: u64,
    /// A bit for each page that a tree or a list of pages has named.
    seen: Vec<u64>,
}

impl<'f> Walk<'f> {
    fn tree(&mut self, record: &[u8], visit: Visit<'_, 'f>) -> Result<()> {
        match u64_at(record, ROOT_AT)? {
            NO_ROOT => Ok(()),
            root => self.page(root, 1, visit),
        }
    }

    fn page(&mut self, number: u64, depth: usize, visit: Visit<'_, 'f>) -> Result<()> {
        self.mark(number)?;
        let page = self.read(number, self.page_bytes)?;
        let kind = u16_at(&page, 10)? & KINDS;
        let (lower, upper) = (usize::from(u16_at(&page, 12)?), usize::from(u16_at(&page, 14)?));
        let sound = u64_at(&page, 0)? == number
            && matches!(kind, BRANCH | LEAF)
            && (HEADER_BYTES..=upper).contains(&lower)
            && upper <= self.page_bytes
            && depth <= DEPTH_MAX;
        let node_count = lower.saturating_sub(HEADER_BYTES) / 2;
        // LMDB would follow a branch with a single child to another page. So a branch needs two
        // children.
        if !sound || node_count < if kind == BRANCH { 2 } else { 1 } {
            return Err(CORRUPT);
        }
        for index in 0..node_count {
            let at = usize::from(u16_at(&page, HEADER_BYTES + 2 * index)?);
            let header = bytes_at(&page, at, NODE_BYTES)?;
            let low = u64::from(u16_at(header, 0)?) | u64::from(u16_at(header, 2)?) << 16;
            let flags = u16_at(header, 4)?;
            let value_at = at + NODE_BYTES + usize::from(u16_at(header, 6)?);
            if at < upper || value_at > self.page_bytes {
                return Err(CORRUPT);
            }
            if kind == BRANCH {
                self.page(low | u64::from(flags) << 32, depth + 1, visit)?;
                continue;
            }
            let length = usize::try_from(low).map_err(|_| CORRUPT)?;
            let value = match flags {
                ON_OVERFLOW_PAGES => {
                    let first = u64_at(&page, value_at)?;
                    self.overflow(first, length)?;
                    LeafValue { is_tree: false, bytes: &[], overflow: Some((first, length)) }
                }
                0 | IS_TREE => {
                    let bytes = bytes_at(&page, value_at, length)?;
                    LeafValue { is_tree: flags == IS_TREE, bytes, overflow: None }
                }
                _ => return Err(CORRUPT),
            };
            visit(self, value)?;
        }
        Ok(())
    }

    fn overflow(&mut self, first: u64, length: usize) -> Result<()> {
        let header = self.read(first, HEADER_BYTES)?;
        let pages = (HEADER_BYTES + length).div_ceil(self.page_bytes) as u64;
        let claimed = u64::from(u16_at(&header, 12)?) | u64::from(u16_at(&header, 14)?) << 16;
        let kind = u16_at(&header, 10)? & KINDS;
        if u64_at(&header, 0)? != first || kind != OVERFLOW || claimed < pages {
            return Err(CORRUPT);
        }
        (first..first.saturating_add(claimed)).try_for_each(|page| self.mark(page))
    }

    /// Checks a value of the main tree, which is a named tree.
    fn named_tree(&mut self, value: LeafValue<'_>) -> Result<()> {
        if !value.is_tree || value.bytes.len() != TREE_BYTES || u16_at(value.bytes, 4)? != 0 {
            return Err(CORRUPT);
        }
        self.tree(value.bytes, &mut |_, value| if value.is_tree { Err(CORRUPT) } else { Ok(()) })
    }

    /// Checks a value of the free tree: a count of pages, then the pages. No page may be in use.
    fn free_pages(&mut self, value: LeafValue<'_>) -> Result<()> {
        let stored;
        let list = match value.overflow {
            Some((first, length)) => {
                stored = self.read(first, HEADER_BYTES + length)?;
                bytes_at(&stored, HEADER_BYTES, length)?
            }
            None => value.bytes,
        };
        let count = usize::try_from(u64_at(list, 0)?).map_err(|_| CORRUPT)?;
        if count.checked_add(1).and_then(|words| words.checked_mul(8)) > Some(list.len()) {
            return Err(CORRUPT);
        }
        (1..=count).try_for_each(|index| self.mark(u64_at(list, 8 * index)?))
    }

    /// Notes that a tree or a list names a page. No page may be named twice.
    fn mark(&mut self, page: u64) -> Result<()> {
        if page < 2 || page > self.last_page {
            return Err(CORRUPT);
        }
        let word = usize::try_from(page / 64).map_err(|_| CORRUPT)?;
        let bits = self.seen.get_mut(word).ok_or(CORRUPT)?;
        let bit = 1 << (page % 64);
        if *bits & bit != 0 {
            return Err(CORRUPT);
        }
        *bits |= bit;
        Ok(())
    }

    fn read(&self, page: u64, length: usize) -> Result<Vec<u8>> {
        let end = (self.last_page + 1).saturating_mul(self.page_bytes as u64);
        let at = page.saturating_mul(self.page_bytes as u64);
        if at.saturating_add(length as u64) > end {
            return Err(CORRUPT);
        }
        let mut bytes = vec![0; length];
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::UnexpectedEof => CORRUPT,
            _ => Error::Io { what: "read the store's database".to_owned(), source },
        };
        self.file.read_exact_at(&mut bytes, at).map_err(failed)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::LmdbStore;
    use super::super::tables::PlaneTables;
    use super::*;
    use crate::storage::store::{NewNames, Store};
    use std::path::{Path, PathBuf};

    /// A folder that is removed with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("fleetcast-check-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    /// Number of pages of names of [`fill`] that lie on overflow pages.
    const LARGE_VALUES: u64 = 40;

    /// Fills a store with small values, values on overflow pages, trees of two levels, and freed
    /// pages.
    fn fill(folder: &Path) -> LmdbStore {
        let store = LmdbStore::create(folder).unwrap();
        for number in 0..120_u16 {
            let sealed_names = vec![7; if number % 3 == 0 { 9_000 } else { 100 }];
            let names = NewNames { series: 1, sealed_names, fields: Vec::new() };
            store.append_names(number.into(), &names).unwrap();
        }
        store
    }

    fn checked(file: &Path) -> Result<()> {
        let pages = std::fs::metadata(file).unwrap().len() / 4096;
        let file = File::open(file).unwrap();
        let newest = newest(&file);
        check(&file, 4096, newest, 2 * pages)
    }

    /// Returns the last transaction.
    fn newest(file: &File) -> u64 {
        let number = |page: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, page * 4096 + TRANSACTION_AT as u64).unwrap();
            u64::from_le_bytes(bytes)
        };
        number(0).max(number(1))
    }

    /// Returns the number of pages of the store's trees, as LMDB counts them. The check must look
    /// at each of these pages. The statistics of the tables have the pages of the tables. The head
    /// has the pages of the tree of tables and of the free tree.
    fn tree_pages(store: &LmdbStore, file: &File) -> u64 {
        let tables = store.env.read("count the pages", |txn| {
            let PlaneTables { meta, names } = &store.tables;
            let stats = [meta.stat(txn)?, names.stat(txn)?];
            Ok(stats.map(|stat| (stat.branch_pages + stat.leaf_pages) as u64))
        });
        let mut head = [0; 4_096];
        file.read_exact_at(&mut head, newest(file) % 2 * 4_096).unwrap();
        let own = [MAIN_TREE_AT, FREE_TREE_AT].map(|at| {
            let [branches, leaves, on_overflow] =
                [8, 16, 24].map(|within| u64_at(&head, at + within).unwrap());
            assert_eq!(on_overflow, 0);
            branches + leaves
        });
        tables.unwrap().iter().chain(&own).sum()
    }

    /// Returns the pages of a file that the check refuses if each byte of the page is `byte`.
    fn refused_pages(path: &Path, byte: u8) -> Vec<u64> {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let is_refused = |page: &u64| {
            let mut sound = [0; 4_096];
            file.read_exact_at(&mut sound, page * 4_096).unwrap();
            file.write_all_at(&[byte; 4_096], page * 4_096).unwrap();
            let outcome = checked(path);
            file.write_all_at(&sound, page * 4_096).unwrap();
            outcome.is_err()
        };
        (2..file.metadata().unwrap().len() / 4_096).filter(is_refused).collect()
    }

    #[test]
    fn each_damaged_page_of_a_tree_is_found_and_no_other() {
        let folder = Folder::new("pages");
        let store = fill(&folder.0);
        let path = folder.0.join("plane.mdb");
        checked(&path).unwrap();
        let file = File::open(&path).unwrap();
        // A value on overflow pages has a head on its first page alone. The rest is sealed.
        let expected = tree_pages(&store, &file) + LARGE_VALUES;
        drop(store);
        let refused = refused_pages(&path, 0x00);
        assert_eq!(refused.len() as u64, expected);
        assert_eq!(refused_pages(&path, 0xa5), refused);
        // A page has its own number, so the check also finds a page at the wrong place.
        let file = File::options().write(true).open(&path).unwrap();
        for page in refused {
            for byte in 0..8 {
                let sound = page.to_le_bytes()[byte];
                let at = page * 4_096 + byte as u64;
                file.write_all_at(&[sound ^ 0x01], at).unwrap();
                assert!(checked(&path).is_err(), "byte {byte} of page {page}");
                file.write_all_at(&[sound], at).unwrap();
            }
        }
        checked(&path).unwrap();
    }

    #[test]
    fn no_damage_panics() {
        let folder = Folder::new("damage");
        drop(fill(&folder.0));
        let path = folder.0.join("plane.mdb");
        let whole = std::fs::read(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        // A prime stride reaches each part of a page.
        for at in (0..whole.len()).step_by(613) {
            for value in [0x00, 0xff, whole[at] ^ 0x01] {
                file.write_all_at(&[value], at as u64).unwrap();
                drop(checked(&path));
            }
            file.write_all_at(&[whole[at]], at as u64).unwrap();
        }
        checked(&path).unwrap();
    }
}
