//! The data keys of segments, while a key turns.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::error::Result;
use crate::storage::seal::KeySlot;
use crate::storage::segment::Segment;
use crate::storage::store::{SegmentId, Store};

/// Slots of segments whose heads were read while the key turns: on a store behind a network each
/// head is a request.
#[derive(Default)]
pub(super) struct SegmentSlots(Mutex<HashMap<SegmentId, KeySlot>>);

impl SegmentSlots {
    pub(super) fn of(&self, store: &dyn Store, id: &SegmentId) -> Result<KeySlot> {
        if let Some(slot) = self.lock().get(id) {
            return Ok(*slot);
        }
        let slot = Segment::slot(store, id)?;
        self.lock().insert(*id, slot);
        Ok(slot)
    }

    /// Forgets all slots. Called when no key turns.
    pub(super) fn clear(&self) {
        *self.lock() = HashMap::new();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SegmentId, KeySlot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
