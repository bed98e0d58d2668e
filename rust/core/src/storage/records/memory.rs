//! Records in memory: all of them, at one version. Tests compare other stores with this store, and
//! a replica of a database keeps its copy in it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::interface::{Changes, Item, RecordSnapshot, RecordStore};
use super::view::only_reads;
use crate::model::error::Result;

/// Records by space and key.
pub type Spaces = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// All records at one version.
#[derive(Clone, Debug, Default)]
pub struct RecordsVersion {
    /// Number of the last change.
    pub version: u64,
    /// The records.
    pub spaces: Spaces,
}

impl RecordsVersion {
    /// Returns the values of keys, in the order of the keys.
    #[must_use]
    pub fn get_all(&self, space: &str, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let held = self.spaces.get(space);
        keys.iter().map(|key| held.and_then(|held| held.get(*key)).cloned()).collect()
    }

    /// Returns records whose keys begin with `prefix`, ascending from the key `first` on: at most
    /// `limit`.
    #[must_use]
    pub fn under(&self, space: &str, prefix: &[u8], first: &[u8], limit: usize) -> Vec<Item> {
        let begin = Bound::Included(prefix.max(first));
        let held = self.spaces.get(space).into_iter();
        let from = held.flat_map(|held| held.range::<[u8], _>((begin, Bound::Unbounded)));
        let found = from.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        found.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns the number of records of a space.
    #[must_use]
    pub fn count(&self, space: &str) -> u64 {
        self.spaces.get(space).map_or(0, BTreeMap::len) as u64
    }

    /// Makes the changes that lead to the version `version`.
    pub fn change(&mut self, version: u64, changes: &Changes) {
        self.version = version;
        for (space, changes) in changes {
            let held = self.spaces.entry(space.clone()).or_default();
            for (key, value) in changes {
                match value {
                    Some(value) => held.insert(key.clone(), value.clone()),
                    None => held.remove(key),
                };
            }
        }
    }
}

/// A store that lives as long as its process.
#[derive(Default)]
pub struct MemoryRecords(Arc<SharedRecords>);

#[derive(Default)]
struct SharedRecords {
    state: Mutex<Arc<RecordsVersion>>,
    is_writing: Mutex<bool>,
    has_written: Condvar,
}

impl SharedRecords {
    fn state(&self) -> MutexGuard<'_, Arc<RecordsVersion>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordStore for MemoryRecords {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        let turn = writes.then(|| WriterGuard::await_in(&self.0));
        let commit = turn.map(|turn| -> CommitFn {
            Box::new(move |changes| {
                let mut state = turn.0.state();
                let version = state.version + 1;
                Arc::make_mut(&mut state).change(version, changes);
                Ok(())
            })
        });
        Ok(Box::new(StateSnapshot::new(Arc::clone(&self.0.state()), commit)))
    }
}

/// The right to write. Dropping it gives the right to the next writer.
struct WriterGuard(Arc<SharedRecords>);

impl WriterGuard {
    fn await_in(shared: &Arc<SharedRecords>) -> Self {
        let is_writing = shared.is_writing.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = shared.has_written.wait_while(is_writing, |is_writing| *is_writing);
        *waited.unwrap_or_else(PoisonError::into_inner) = true;
        Self(Arc::clone(shared))
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        *self.0.is_writing.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.has_written.notify_one();
    }
}

/// Makes changes durable.
pub type CommitFn = Box<dyn FnOnce(&Changes) -> Result<()> + Send>;

/// A state in memory, and the function that makes changes durable.
pub struct StateSnapshot {
    state: Arc<RecordsVersion>,
    commit: Option<CommitFn>,
}

impl StateSnapshot {
    /// Makes a snapshot of `state`. If `commit` is `None`, the snapshot only reads.
    #[must_use]
    pub fn new(state: Arc<RecordsVersion>, commit: Option<CommitFn>) -> Self {
        Self { state, commit }
    }
}

impl RecordSnapshot for StateSnapshot {
    fn version(&self) -> u64 {
        self.state.version
    }

    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(self.state.get_all(space, keys))
    }

    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>> {
        Ok(self.state.under(space, prefix, first, limit))
    }

    fn count(&mut self, space: &str) -> Result<u64> {
        Ok(self.state.count(space))
    }

    fn commit(self: Box<Self>, changes: &Changes) -> Result<()> {
        self.commit.ok_or_else(only_reads)?(changes)
    }
}
