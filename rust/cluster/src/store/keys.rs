//! The data keys that a handle seals with, by the ids that the database knows them by.
//!
//! No database can know that a process of another machine sleeps. So a key is not locked. The
//! database has the ids of the keys that are open, and refuses bytes under any other key. A key is
//! closed some time after the turn, and each handle learns of the turn within half that time.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fleetcast_core::storage::seal::{KeyId, KeySlot, blob_slot};
use fleetcast_core::storage::store::NewBlock;

use super::small::lock;
use crate::identity::Id;

/// Time for which a handle uses its keys after the database has confirmed them. An old key stays
/// open for twice as long.
const CONFIRMED_FOR: Duration = Duration::from_secs(5);

/// Time between two questions of a handle if the answers do not confirm its keys, or do not come.
const ASKED_FOR: Duration = Duration::from_secs(1);

/// Takes the place of the id of a key that the handle was not told. No key has this id.
const UNKNOWN: Id = Id([0; 16]);

#[derive(Default)]
pub(super) struct HandleKeys(Mutex<HandleKeyState>);

#[derive(Default)]
struct HandleKeyState {
    /// The id of the key in each slot that this handle has sealed with last.
    ids: [Option<Id>; 2],
    sealing: Option<Id>,
    /// An instant at which no newer key was in the key file. `None` if there may be a newer key.
    confirmed_at: Option<Instant>,
    /// The last instant at which a caller was told to read the key file.
    asked_at: Option<Instant>,
}

impl HandleKeys {
    /// Notes the key of all bytes from now on, which was the key that seals at `known_at`.
    pub(super) fn note(&self, slot: KeySlot, id: KeyId, known_at: Instant) {
        let mut state = self.state();
        if let Some(known) = state.ids.get_mut(usize::from(slot)) {
            *known = Some(Id(id));
        }
        (state.sealing, state.confirmed_at) = (Some(Id(id)), Some(known_at));
    }

    /// Returns the id of the key that has just sealed these bytes.
    pub(super) fn id_of(&self, sealed: &[u8]) -> Id {
        let slot = blob_slot(sealed).map(usize::from);
        slot.and_then(|slot| *self.state().ids.get(slot)?).unwrap_or(UNKNOWN)
    }

    /// Returns the id of the key that has just sealed a batch. Returns `None` for a batch of numbers
    /// alone.
    pub(super) fn id_of_batch(&self, blocks: &[NewBlock]) -> Option<Id> {
        let positions = blocks.iter().filter_map(|block| Some(&block.cursor.as_ref()?.position));
        let mut all = blocks.iter().map(|block| &block.sealed).chain(positions);
        all.find(|sealed| !sealed.is_empty()).map(|sealed| self.id_of(sealed))
    }

    /// Notes the answer of the database to a question that was asked at `asked_at`: the newest key
    /// that is open, or `None` for a plane whose key has never turned.
    pub(super) fn note_newest(&self, newest: Option<Id>, asked_at: Instant) {
        let mut state = self.state();
        if newest.is_none() || newest == state.sealing {
            state.confirmed_at = state.confirmed_at.max(Some(asked_at));
        } else {
            state.confirmed_at = None;
        }
    }

    /// Notes that the database has refused a key. The next caller reads the key file.
    pub(super) fn note_refused(&self) {
        let mut state = self.state();
        (state.confirmed_at, state.asked_at) = (None, None);
    }

    /// Returns true to a single caller a second if the database has not confirmed the keys.
    pub(super) fn may_have_turned(&self) -> bool {
        let mut state = self.state();
        let is_within = |at: Option<Instant>, time| at.is_some_and(|at| at.elapsed() < time);
        if is_within(state.confirmed_at, CONFIRMED_FOR) || is_within(state.asked_at, ASKED_FOR) {
            return false;
        }
        state.asked_at = Some(Instant::now());
        true
    }

    fn state(&self) -> MutexGuard<'_, HandleKeyState> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_slot_that_is_used_again_has_its_own_id() {
        let keys = HandleKeys::default();
        let sealed = |slot: u8| vec![slot + 1; 18];
        assert_eq!(keys.id_of(&sealed(0)), UNKNOWN);
        keys.note(0, [1; 16], Instant::now());
        keys.note(1, [2; 16], Instant::now());
        assert_eq!([keys.id_of(&sealed(0)), keys.id_of(&sealed(1))], [Id([1; 16]), Id([2; 16])]);
        keys.note(0, [3; 16], Instant::now());
        assert_eq!(keys.id_of(&sealed(0)), Id([3; 16]));
        assert_eq!(keys.id_of(&sealed(9)), UNKNOWN);
    }

    #[test]
    fn a_newer_key_makes_a_single_caller_read_the_key_file() {
        let keys = HandleKeys::default();
        let asked_at = Instant::now();
        keys.note(0, [1; 16], asked_at);
        assert!(!keys.may_have_turned());
        keys.note_newest(Some(Id([2; 16])), asked_at);
        assert_eq!([keys.may_have_turned(), keys.may_have_turned()], [true, false]);
        keys.note(1, [2; 16], Instant::now());
        keys.note_newest(Some(Id([2; 16])), asked_at);
        assert!(!keys.may_have_turned());
    }

    #[test]
    fn after_a_refusal_the_next_caller_reads_the_key_file() {
        let keys = HandleKeys::default();
        assert!(keys.may_have_turned(), "a handle that was told no key");
        keys.note_refused();
        assert!(keys.may_have_turned());
    }

    #[test]
    fn the_key_of_a_batch_is_the_key_of_its_block_or_position() {
        let keys = HandleKeys::default();
        keys.note(1, [2; 16], Instant::now());
        assert_eq!(keys.id_of_batch(&[NewBlock::default()]), None);
        let block = NewBlock { sealed: vec![2; 18], ..NewBlock::default() };
        assert_eq!(keys.id_of_batch(&[NewBlock::default(), block]), Some(Id([2; 16])));
    }
}
