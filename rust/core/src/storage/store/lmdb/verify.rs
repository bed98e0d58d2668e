//! A look at all records of an LMDB store: are they sound, and do they agree with each other?

use heed::RoTxn;

use super::errors::TxnResult;
use super::store::LmdbStore;
use super::tables::Sequenced;
use crate::model::error::{Error, Result};

impl LmdbStore {
    /// A line for each record that is damaged or contradicts another, out of one snapshot. What is
    /// sealed is not opened.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Corrupt`] where the head record is damaged, and those of the
    /// machine.
    pub(super) fn verify_tables(&self) -> Result<Vec<String>> {
        let (head, mut damages) = self.env.read("verify the store", |txn| {
            let head = self.tables.head(txn)?;
            let mut damages = Vec::new();
            positions(self.tables.names, txn, "names", 0, &mut damages)?;
            // Blocks of older versions that are not compacted yet.
            let log = positions(self.tables.log, txn, "log", head.compacted, &mut damages)?;
            let last = head.table_last.max(head.compacted);
            if log.last != last {
                damages.push(format!("log: its table ends at {}, not {last}", log.last));
            }
            if log.bytes != head.table_bytes {
                let counted = head.table_bytes;
                damages.push(format!("log: its table has {} bytes, not {counted}", log.bytes));
            }
            if self.tables.cursors(txn).is_err() {
                damages.push("cursors: the record is damaged".to_owned());
            }
            Ok((head, damages))
        })?;
        match self.log.verify(head.taken()) {
            Ok((sequence, _)) if sequence >= head.compacted => {}
            Ok((sequence, _)) => {
                damages.push(format!("log: it ends at {sequence}, not {}", head.compacted));
            }
            // Compaction has removed what was to be read.
            Err(Error::Stale) => {}
            Err(error @ Error::Corrupt { .. }) => damages.push(format!("log: {error}")),
            Err(error) => return Err(error),
        }
        Ok(damages)
    }
}

struct Positions {
    last: u64,
    bytes: u64,
}

/// Keys go on from `after` without a gap.
fn positions(
    table: Sequenced,
    txn: &RoTxn<'_>,
    name: &str,
    after: u64,
    damages: &mut Vec<String>,
) -> TxnResult<Positions> {
    let mut found = Positions { last: after, bytes: 0 };
    for item in table.iter(txn)? {
        let (key, value) = item?;
        if found.last.checked_add(1) != Some(key) {
            damages.push(format!("{name}: {key} follows {}", found.last));
        }
        found.last = key;
        found.bytes += value.len() as u64;
    }
    Ok(found)
}
