//! The records as one transaction sees them: a snapshot, and its own changes above it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use super::interface::{Changes, Item, Snapshot};
use crate::model::error::{Error, Result};

/// Some records of a space, and the key from which the next ones begin, if there may be more.
pub type Page = (Vec<Item>, Option<Vec<u8>>);

/// A transaction under way. Dropped without [`Self::commit`], it changes nothing.
pub struct View {
    snapshot: Box<dyn Snapshot>,
    /// Values that were read, by space and key: each is asked for once.
    known: HashMap<String, HashMap<Vec<u8>, Option<Vec<u8>>>>,
    changes: Changes,
}

impl View {
    /// The records of a snapshot.
    #[must_use]
    pub fn new(snapshot: Box<dyn Snapshot>) -> Self {
        Self { snapshot, known: HashMap::new(), changes: Changes::new() }
    }

    /// Number of the last change of others that is seen here.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of a store that cannot be used now.
    pub fn get(&mut self, space: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(changed) = self.changes.get(space).and_then(|changes| changes.get(key)) {
            return Ok(changed.clone());
        }
        self.load(space, &[key])?;
        Ok(self.known.get(space).and_then(|known| known.get(key)).cloned().flatten())
    }

    /// Reads the values of many keys at once, for [`Self::get`].
    ///
    /// # Errors
    /// As [`Self::get`].
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

    /// Records whose keys begin with `prefix`, ascending from the key `first` on. The store is asked
    /// for `limit` of them.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Page> {
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

    /// Number of records of a space.
    ///
    /// # Errors
    /// As [`Self::get`].
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

    /// Deletes a record, if it is there.
    pub fn delete(&mut self, space: &str, key: &[u8]) {
        self.change(space, key, None);
    }

    fn change(&mut self, space: &str, key: &[u8], value: Option<Vec<u8>>) {
        self.changes.entry(space.to_owned()).or_default().insert(key.to_vec(), value);
    }

    /// Makes the changes, durable on return. A transaction without changes writes nothing.
    ///
    /// # Errors
    /// As [`Snapshot::commit`], of which each begins the message by what was tried.
    pub fn commit(self) -> Result<()> {
        if self.changes.is_empty() { Ok(()) } else { self.snapshot.commit(&self.changes) }
    }
}

/// The key behind `key` in the order of bytes.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// A snapshot that only reads was asked to change something.
#[must_use]
pub fn only_reads() -> Error {
    Error::Invalid { message: "this transaction only reads".to_owned() }
}
