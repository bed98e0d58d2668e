//! The parts of an LMDB file that are read without LMDB. The layout is the layout of its `mdb.c`:
//! `MDB_page`, `MDB_node`, `MDB_db`, `MDB_meta`.

use crate::model::error::{Error, Result};

pub(super) const CORRUPT: Error = Error::Corrupt { what: "the store's database" };

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const BRANCH: u16 = 0x01;
pub(super) const LEAF: u16 = 0x02;
pub(super) const OVERFLOW: u16 = 0x04;
/// Flags that give the kind of a page. The other flags matter only in memory.
pub(super) const KINDS: u16 = 0x6f;

pub(super) const NODE_BYTES: usize = 8;
pub(super) const ON_OVERFLOW_PAGES: u16 = 0x01;
pub(super) const IS_TREE: u16 = 0x02;

/// Bytes of a head page that a commit writes.
pub(super) const WRITTEN_HEAD: std::ops::Range<usize> = HEADER_BYTES + 16..TRANSACTION_AT + 8;
/// Offsets in a head page: the two trees, the last page in use, and the transaction that wrote the
/// head page.
pub(super) const FREE_TREE_AT: usize = HEADER_BYTES + 24;
pub(super) const MAIN_TREE_AT: usize = FREE_TREE_AT + TREE_BYTES;
pub(super) const LAST_PAGE_AT: usize = MAIN_TREE_AT + TREE_BYTES;
pub(super) const TRANSACTION_AT: usize = LAST_PAGE_AT + 8;
/// Bytes of a tree's record, and the offset of the root in the record.
pub(super) const TREE_BYTES: usize = 48;
pub(super) const ROOT_AT: usize = 40;
pub(super) const NO_ROOT: u64 = u64::MAX;
/// Offsets of the counts of branch, leaf and overflow pages in the record.
pub(super) const PAGE_COUNTS_AT: [usize; 3] = [8, 16, 24];

pub(super) fn bytes_at(bytes: &[u8], at: usize, length: usize) -> Result<&[u8]> {
    at.checked_add(length).and_then(|end| bytes.get(at..end)).ok_or(CORRUPT)
}

// LMDB writes numbers in the byte order of the machine. Its files move only between machines of the
// same kind.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let bytes = bytes_at(bytes, at, 2)?.try_into().map_err(|_| CORRUPT)?;
    Ok(u16::from_le_bytes(bytes))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    let bytes = bytes_at(bytes, at, 8)?.try_into().map_err(|_| CORRUPT)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns flags and value of the entry of `key` in a leaf page. The value is not on overflow
/// pages.
pub(super) fn leaf_entry<'p>(page: &'p [u8], key: &[u8]) -> Result<Option<(u16, &'p [u8])>> {
    if u16_at(page, 10)? & KINDS != LEAF {
        return Err(CORRUPT);
    }
    let node_count = usize::from(u16_at(page, 12)?).saturating_sub(HEADER_BYTES) / 2;
    for index in 0..node_count {
        let at = usize::from(u16_at(page, HEADER_BYTES + 2 * index)?);
        let header = bytes_at(page, at, NODE_BYTES)?;
        let key_bytes = usize::from(u16_at(header, 6)?);
        if bytes_at(page, at + NODE_BYTES, key_bytes)? == key {
            let flags = u16_at(header, 4)?;
            let length = usize::from(u16_at(header, 0)?);
            let is_inline = flags & ON_OVERFLOW_PAGES == 0 && u16_at(header, 2)? == 0;
            let value = bytes_at(page, at + NODE_BYTES + key_bytes, length)?;
            return if is_inline { Ok(Some((flags, value))) } else { Err(CORRUPT) };
        }
    }
    Ok(None)
}
