//! Checks that all records of an LMDB store are sound and agree with each other.

use super::store::LmdbStore;
use crate::model::error::{Error, Result};

impl LmdbStore {
    /// Returns a line for each record that is damaged or contradicts another record, from one
    /// snapshot. Does not open sealed bytes.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the head record is damaged, and the
    /// errors of the machine.
    pub(super) fn verify_tables(&self) -> Result<Vec<String>> {
        let (head, mut damages) = self.env.read("verify the store", |txn| {
            let head = self.tables.head(txn)?;
            let mut damages = Vec::new();
            let mut last = 0;
            for item in self.tables.names.iter(txn)? {
                let (page, _) = item?;
                if page != last + 1 {
                    damages.push(format!("names: {page} follows {last}"));
                }
                last = page;
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
            // Compaction has removed files during the read.
            Err(Error::Stale) => {}
            Err(error @ Error::Corrupt { .. }) => damages.push(format!("log: {error}")),
            Err(error) => return Err(error),
        }
        Ok(damages)
    }
}
