//! A look at all records of an LMDB store: are they sound, and do they agree with each other?

use heed::RoTxn;

use super::errors::TxnResult;
use super::store::LmdbStore;
use super::tables::Sequenced;
use crate::model::error::Result;

impl LmdbStore {
    /// A line for each record that is damaged or contradicts another, out of one snapshot. What is
    /// sealed is not opened.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Corrupt`] where the head record is damaged, and those of the
    /// machine.
    pub fn verify_tables(&self) -> Result<Vec<String>> {
        self.env.read("verify the store", |txn| {
            let head = self.tables.head(txn)?;
            let mut damages = Vec::new();
            positions(self.tables.names, txn, "names", 0, &mut damages)?;
            let log = positions(self.tables.log, txn, "log", head.compacted, &mut damages)?;
            if log.last != head.log_last {
                damages.push(format!("log: it ends at {}, not {}", log.last, head.log_last));
            }
            if log.bytes != head.counts.log_bytes {
                let counted = head.counts.log_bytes;
                damages.push(format!("log: it has {} bytes, not {counted}", log.bytes));
            }
            if self.tables.cursors(txn).is_err() {
                damages.push("cursors: the record is damaged".to_owned());
            }
            Ok(damages)
        })
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
