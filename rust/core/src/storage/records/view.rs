//! The records as one transaction sees them: a snapshot, with the transaction's changes above it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use super::interface::{Changes, Item, RecordSnapshot};
use crate::model::error::{Error, Result};

/// Some records of a space. The key is the first key of the next page, if there may be more
/// records.
pub type RecordsPage = (Vec<Item>, Option<Vec<u8>>);

/// A transaction in progress. Dropping it without [`Self::commit`] changes no record.
pub struct RecordTransaction {
    snapshot: Box<dyn RecordSnapshot>,
    /// Values that were read, by space and key. A value is read from the store once.
    known: HashMap<String, HashMap<Vec<u8>, Option<Vec<u8>>>>,
    changes: Changes,
}

impl RecordTransaction {
    /// Begins a transaction on a snapshot.
    #[must_use]
    pub fn new(snapshot: Box<dyn RecordSnapshot>) -> Self {
        Self { snapshot, known: HashMap::new(), changes: Changes::new() }
    }

    /// Returns the number of the last change by other transactions that this transaction sees.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// Returns the records without the changes of this transaction.
    pub fn snapshot(&mut self) -> &mut dyn RecordSnapshot {
        &mut *self.snapshot
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// Returns an error if the store cannot be used now.
    pub fn get(&mut self, space: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(changed) = self.changes.get(space).and_then(|changes| changes.get(key)) {
            return Ok(changed.clone());
        }
        self.load(space, &[key])?;
        Ok(self.known.get(space).and_then(|known| known.get(key)).cloned().flatten())
    }

    /// Reads the values of many keys at once, so that [`Self::get`] has them.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get`].
    pub fn load(&mut self, space: &str, keys: &[&[u8]]) -> Result<()> {
        let known = self.known.get(space);
        let is_unknown = |key: &[u8]| known.is_none_or(|known| !known.contains_key(key));
        let unknown: Vec<&[u8]> = keys.iter().copied().filter(|key| is_unknown(key)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let values = self.snapshot.get_all(space, &unknown)?;
        let known = self.known.entry(space.to_owned()).or_default();
        known.extend(unknown.iter().map(|key| key.to_vec()).zip(values));
        Ok(())
    }

    /// Returns records whose keys begin with `prefix`, ascending from the key `first` on. Asks the
    /// store for `limit` records.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get`].
    pub fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<RecordsPage> {
        let first = prefix.max(first);
        let stored = self.snapshot.under(space, prefix, first, limit)?;
        let last = stored.last().filter(|_| stored.len() >= limit).map(|(key, _)| key.clone());
        let Some(changes) = self.changes.get(space) else {
            return Ok((stored, last.map(after)));
        };
        let end = last.as_ref().map_or(Bound::Unbounded, |last| Bound::Included(last.as_slice()));
        let mut found: BTreeMap<Vec<u8>, Vec<u8>> = stored.into_iter().collect();
        let changed = changes.range::<[u8], _>((Bound::Included(first), end));
        for (key, value) in changed.take_while(|(key, _)| key.starts_with(prefix)) {
            match value {
                Some(value) => found.insert(key.clone(), value.clone()),
                None => found.remove(key),
            };
        }
        Ok((found.into_iter().collect(), last.map(after)))
    }

    /// Returns the number of records of a space.
    ///
    /// # Errors
    /// Returns the errors of [`Self::get`].
    pub fn count(&mut self, space: &str) -> Result<u64> {
        let keys = self.changes.get(space).into_iter().flatten();
        let changed: Vec<_> = keys.map(|(key, value)| (key.clone(), value.is_some())).collect();
        let keys: Vec<&[u8]> = changed.iter().map(|(key, _)| key.as_slice()).collect();
        self.load(space, &keys)?;
        let mut count = self.snapshot.count(space)?;
        for (key, is_there) in &changed {
            let was_there = self.known.get(space).and_then(|known| known.get(key)?.as_ref());
            count = count + u64::from(*is_there) - u64::from(was_there.is_some());
        }
        Ok(count)
    }

    /// Adds or replaces a record.
    pub fn put(&mut self, space: &str, key: &[u8], value: &[u8]) {
        self.change(space, key, Some(value.to_vec()));
    }

    /// Deletes a record, if it exists.
    pub fn delete(&mut self, space: &str, key: &[u8]) {
        self.change(space, key, None);
    }

    fn change(&mut self, space: &str, key: &[u8], value: Option<Vec<u8>>) {
        self.changes.entry(space.to_owned()).or_default().insert(key.to_vec(), value);
    }

    /// Makes the changes, which are durable when this returns. A transaction without changes writes
    /// no record.
    ///
    /// # Errors
    /// Returns the errors of [`RecordSnapshot::commit`]. The message of each error begins with the
    /// attempted change.
    pub fn commit(self) -> Result<()> {
        if self.changes.is_empty() { Ok(()) } else { self.snapshot.commit(&self.changes) }
    }
}

/// Returns the key that follows `key` in the order of bytes.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Makes the error of a snapshot that only reads but was asked to change a record.
#[must_use]
pub fn only_reads() -> Error {
    Error::Invalid { message: "this transaction only reads".to_owned() }
}
