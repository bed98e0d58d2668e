//! Stores that fleetcast 0.3.0 wrote without a seal.

use super::SealedRecords;
use super::context::{SealContext, each, stored_head};
use super::head::RecordsHead;
use super::seal::{FACTS, OPEN_CHECK_KEY, OPEN_FACTS};
use crate::model::error::Result;
use crate::storage::records::interface::{Changes, Item};

impl SealedRecords {
    /// Returns the records of a space of a store without a seal. Returns no records for other
    /// stores.
    ///
    /// # Errors
    /// Returns the errors of a snapshot.
    pub fn unsealed(&self, space: &str) -> Result<Vec<Item>> {
        let mut snapshot = self.records.begin(false)?;
        let mut found = Vec::new();
        if stored_head(&mut *snapshot)?.is_none() {
            each(&mut *snapshot, space, |key, value| {
                found.push((key, value));
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Seals a store that was written without a seal, in one transaction: all records in its
    /// spaces, and the facts under these keys. Returns false if the store is already sealed.
    ///
    /// # Errors
    /// Returns the errors of a snapshot and of its commit. Returns
    /// [`crate::model::error::Error::Foreign`] if the file of its revision says that the store was
    /// sealed before.
    pub fn take_over(&self, facts: &[&[u8]]) -> Result<bool> {
        if self.is_sealed()? {
            return Ok(false);
        }
        let mut snapshot = self.records.begin(true)?;
        if stored_head(&mut *snapshot)?.is_some() {
            return Ok(false); // another process was faster
        }
        if let Some(counted) = &self.sealed.counted {
            counted.file.refuse_unsealed(&self.sealed.place)?;
        }
        let (mut changes, mut found) = (Changes::new(), Changes::new());
        for space in &self.sealed.spaces {
            let records = found.entry(space.clone()).or_default();
            each(&mut *snapshot, space, |key, value| {
                records.insert(key, Some(value));
                Ok(())
            })?;
        }
        for (key, value) in facts.iter().zip(snapshot.get_all(OPEN_FACTS, facts)?) {
            if value.is_some() {
                found.entry(FACTS.to_owned()).or_default().insert(key.to_vec(), value);
                changes.entry(OPEN_FACTS.to_owned()).or_default().insert(key.to_vec(), None);
            }
        }
        changes.entry(OPEN_FACTS.to_owned()).or_default().insert(OPEN_CHECK_KEY.to_vec(), None);
        let (mut head, seal) = (RecordsHead::new()?, self.sealed.seal());
        SealContext::seal_all(&seal, &mut head, &found, &mut changes)?;
        self.sealed.commit(snapshot, &seal, changes, &head, true)?;
        Ok(true)
    }
}
