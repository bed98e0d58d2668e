//! The named tables of the environment, and the records that every transaction reads.

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, RoTxn, RwTxn};

use super::environment::PlaneEnvironment;
use super::errors::TxnResult;
use super::records;
use crate::model::error::{Error, Result};
use crate::storage::store::cursor::Cursors;
use crate::storage::store::entries::READ_BYTES_MAX;

pub(super) type SequenceTable = Database<'static, U64<BigEndian>, Bytes>;
type PlainTable = Database<'static, Bytes, Bytes>;

/// Tables of a store.
pub(super) struct PlaneTables {
    /// `"head"` -> [`records::HeadRecord`].
    pub(super) meta: PlainTable,
    /// Page number -> ids and sealed names.
    pub(super) names: SequenceTable,
}

impl PlaneTables {
    pub(super) fn head(&self, txn: &RoTxn<'_>) -> TxnResult<records::HeadRecord> {
        match self.meta.get(txn, records::HEAD)? {
            Some(bytes) => Ok(records::HeadRecord::decode(bytes)?),
            None => Ok(records::HeadRecord::default()),
        }
    }

    /// Detects a lost head record, which is stored before all other records.
    pub(super) fn check_first_head(&self, txn: &RoTxn<'_>) -> TxnResult<()> {
        let has_manifest = self.meta.get(txn, records::MANIFEST)?.is_some();
        let is_used = has_manifest || !self.names.is_empty(txn)?;
        if is_used && self.meta.get(txn, records::HEAD)?.is_none() {
            return Err(Error::Corrupt { what: "the store's head record" }.into());
        }
        Ok(())
    }

    /// Returns the bytes of all pages in use.
    pub(super) fn used_bytes(&self, env: &PlaneEnvironment) -> Result<u64> {
        let pages = env.read("count the pages", |txn| {
            Ok([self.meta.stat(txn)?, self.names.stat(txn)?]
                .iter()
                .map(|stat| stat.branch_pages + stat.leaf_pages + stat.overflow_pages)
                .sum::<usize>())
        })?;
        Ok(pages as u64 * env.page_bytes())
    }

    /// Returns the number of the last page of names.
    pub(super) fn pages(&self, txn: &RoTxn<'_>) -> TxnResult<u64> {
        Ok(self.names.last(txn)?.map_or(0, |(page, _)| page))
    }

    /// Returns the cursors of imports.
    pub(super) fn cursors(&self, txn: &RoTxn<'_>) -> TxnResult<Cursors> {
        let stored = self.meta.get(txn, records::CURSORS)?;
        Ok(stored.map_or_else(|| Ok(Cursors::default()), records::decode_cursors)?)
    }

    pub(super) fn put_head(&self, txn: &mut RwTxn<'_>, head: records::HeadRecord) -> TxnResult<()> {
        Ok(self.meta.put(txn, records::HEAD, &head.encode())?)
    }
}

/// Copies the records with keys greater than `after`, in order, until they have [`READ_BYTES_MAX`]
/// bytes.
pub(super) fn copy_after(
    table: SequenceTable,
    txn: &RoTxn<'_>,
    after: u64,
) -> TxnResult<Vec<(u64, Vec<u8>)>> {
    let mut copied = Vec::new();
    let mut bytes = 0;
    let range = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
    for item in table.range(txn, &range)? {
        let (key, value) = item?;
        // Positions have no gaps, so a gap shows a damaged key.
        let before = copied.last().map_or(after, |(key, _): &(u64, _)| *key);
        if before.checked_add(1) != Some(key) {
            return Err(Error::Corrupt { what: "the order of the store's records" }.into());
        }
        bytes += value.len();
        copied.push((key, value.to_vec()));
        if bytes >= READ_BYTES_MAX {
            break;
        }
    }
    Ok(copied)
}
