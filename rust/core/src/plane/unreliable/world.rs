//! An engine on a network, as planes see it. The memory store stands behind calls that fail, take
//! time, leave their outcome open, lose leases and forget changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::model::error::{Error, Result};
use crate::storage::seal::KeySlot;
use crate::storage::store::{MemoryStore, PeekedCounts, Planes, SegmentId, Store};

use super::store::{FaultyStore, loaded_copy};

/// Outcome of a call that changes the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Unavailable,
    /// The answer is lost, and the store is unchanged.
    UnknownUndone,
    /// The answer is lost, and the store is changed.
    UnknownDone,
}

pub(super) type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// The engine, and all its failures.
#[derive(Default)]
pub(super) struct World {
    store: RwLock<Arc<MemoryStore>>,
    key: Mutex<Vec<u8>>,
    dice: Mutex<u64>,
    /// Number of calls of which one fails. No call fails if it is 0.
    one_in: AtomicU64,
    /// Number of forks so far. A handle that knows an older history gets an error.
    pub(super) history: AtomicU64,
    /// Number of the last lease of compaction, and the lease that is held.
    pub(super) leases: Mutex<(u64, Option<u64>)>,
    /// Slot of the data key that each handle seals with, by the number of the handle, and the slot
    /// that no handle may seal with.
    pub(super) held: Mutex<(HashMap<u64, KeySlot>, Option<KeySlot>)>,
    pub(super) handles: AtomicU64,
    /// Segments that were removed. As in a store behind a network, readers may still read them.
    pub(super) removed: Mutex<HashMap<SegmentId, Vec<u8>>>,
    /// State before a change that may still be forgotten, because no process learned that it was
    /// stored.
    undone: Mutex<Option<MemoryStore>>,
    /// Outcome of the next change. Overrides the dice.
    pub(super) next: Mutex<Option<Fate>>,
    /// Called once, by the next view, before it returns.
    pub(super) in_view: Hook,
    /// Called once, by the next segment, before it is finished.
    pub(super) in_segment: Hook,
    /// Number of calls of `view` and of `names_after`.
    pub(super) views: AtomicUsize,
    pub(super) pages: AtomicUsize,
    /// Segments that were announced before they were read.
    pub(super) fetched: AtomicUsize,
}

/// Gives access to the only plane of the engine.
#[derive(Clone, Default)]
pub(super) struct Network(pub(super) Arc<World>);

impl World {
    pub(super) fn store(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn seed(&self, seed: u64, one_in: u64) {
        *self.dice.lock().unwrap() = seed | 1;
        self.one_in.store(one_in, Ordering::Relaxed);
    }

    /// Returns a number below `bound`.
    pub(super) fn draw(&self, bound: u64) -> u64 {
        let mut dice = self.dice.lock().unwrap();
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        (*dice >> 16) % bound
    }

    pub(super) fn goes_wrong(&self) -> bool {
        let one_in = self.one_in.load(Ordering::Relaxed);
        one_in > 0 && self.draw(one_in) == 0
    }

    fn fate(&self) -> Fate {
        if let Some(fate) = self.next.lock().unwrap().take() {
            return fate;
        }
        if !self.goes_wrong() {
            return Fate::Done;
        }
        match self.draw(3) {
            0 => Fate::Unavailable,
            1 => Fate::UnknownUndone,
            _ => Fate::UnknownDone,
        }
    }

    /// Makes a call that does not change the store.
    pub(super) fn read<T>(&self, call: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        if self.goes_wrong() { Err(unavailable()) } else { call(&self.store()) }
    }

    /// Makes a call that changes the store.
    pub(super) fn change<T>(&self, call: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let fate = self.fate();
        match fate {
            Fate::Unavailable => return Err(unavailable()),
            Fate::UnknownUndone => return Err(unknown()),
            Fate::UnknownDone => {
                let before = loaded_copy(&self.store());
                let mut undone = self.undone.lock().unwrap();
                // All later changes are forgotten with this change.
                undone.get_or_insert(before);
            }
            // An acknowledged commit is copied, and all earlier commits with it.
            Fate::Done => *self.undone.lock().unwrap() = None,
        }
        let outcome = call(&self.store())?;
        if fate == Fate::Done { Ok(outcome) } else { Err(unknown()) }
    }

    /// Fails over to a copy without the changes that no process was told of. Returns false if there
    /// are none.
    pub(super) fn fork(&self) -> bool {
        let Some(before) = self.undone.lock().unwrap().take() else { return false };
        *self.store.write().unwrap() = Arc::new(before);
        self.history.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Lets the lease of compaction expire.
    pub(super) fn lose_lease(&self) {
        self.leases.lock().unwrap().1 = None;
    }
}

fn unavailable() -> Error {
    Error::Unavailable { what: "the test refused the call".to_owned() }
}

fn unknown() -> Error {
    Error::Unknown { what: "the test lost the answer".to_owned() }
}

impl Planes for Network {
    fn create(
        &self,
        _plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        fill(&*self.0.store())?;
        *self.0.key.lock().unwrap() = wrapped_key.to_vec();
        Ok(())
    }

    fn wrapped_key(&self, _plane: &str) -> Result<Vec<u8>> {
        Ok(self.0.key.lock().unwrap().clone())
    }

    fn open(&self, _plane: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FaultyStore::new(Arc::clone(&self.0))))
    }

    fn replace_key(&self, _plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool> {
        let mut key = self.0.key.lock().unwrap();
        let is_same = *key == before;
        if is_same {
            *key = wrapped_key.to_vec();
        }
        Ok(is_same)
    }

    fn destroy(&self, plane: &str) -> Result<()> {
        Err(Error::Missing(plane.to_owned()))
    }

    fn counts(&self, plane: &str) -> Result<PeekedCounts> {
        Err(Error::Missing(plane.to_owned()))
    }
}
