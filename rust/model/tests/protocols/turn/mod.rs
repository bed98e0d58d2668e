//! The turn of a data key on many machines, as `docs/decisions/0093-data-keys-turn.md` designs it:
//! writers that seal with a cached key, and compactors that bring a new key and drop the old key.
//!
//! A statement is one step here, as in the model of a tenant. Any process may sleep between two of
//! its steps, for ever too: so a process that is killed needs no step. A plane that is restored in
//! the middle of a turn is a plane whose compactors all died then. `TURN_KEY` and `CLOSE` both
//! name all keys that are open.

mod state;

mod compaction;
mod key_file;
mod writes;

mod tests;

use stateright::{Model, Property};

use self::state::{Compactor, KeyFile, TurningTenant, Writer};

/// The model and its bounds.
#[derive(Clone, Debug)]
struct Turn {
    /// Keys that come after the first key.
    turns: u8,
    /// Answers of appends that are lost.
    losses: u8,
    /// Leases that end too early.
    pauses: u8,
    flaw: Option<Flaw>,
}

/// A check that is left out, or done too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// An append does not ask if its key is open.
    AppendUnasked,
    /// An append asks for the slot of its key, which a later key takes again. So does a handle that
    /// learns the id of the later key and goes on with the key that it had.
    AppendBySlot,
    /// A page of names is appended without the question if its key is open.
    PageUnasked,
    /// A refused append counts as not stored although the answer to an earlier attempt was lost.
    RefusedIsAbsent,
    /// A refused append counts as stored if the answer to an earlier attempt was lost.
    LostIsStored,
    /// A compactor reads the key file, and then takes the lease.
    KeysBeforeLease,
    /// A turn writes over the key file that it read, although the file is another by now.
    TurnWithoutCompare,
    /// A new master key opens all keys of the file, as the writes of a turn do.
    RewrapOpens,
    /// The old key is closed by the statement that drops it, behind the look for its bytes.
    ClosedByDrop,
    /// A key is closed without the fence.
    CloseWithoutFence,
    /// A manifest is replaced without the fence.
    ManifestWithoutFence,
    /// A page of names is sealed again without the fence.
    PageWithoutFence,
    /// The drop asks for the slot of the old key instead of the fence.
    DropBySlot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// A writer reads the key file between two batches.
    ReadKeys(usize),
    AppendPage(usize),
    Write(usize),
    LoseAnswer(usize),
    /// The append whose answer was lost takes effect now.
    AppendLate,
    TakeLease(usize),
    /// A compactor reads the key file under its lease.
    LearnKeys(usize),
    TurnKey(usize),
    Compact(usize),
    Rewrap,
}

impl Model for Turn {
    type State = TurningTenant;
    type Action = Action;

    fn init_states(&self) -> Vec<TurningTenant> {
        vec![TurningTenant {
            file: KeyFile::of(0),
            open: 1,
            log: [0; 2],
            stored: [0; 2],
            segment: 0,
            page: None,
            holder: None,
            writers: [Writer::Idle(0); 2],
            compactors: [Compactor::Idle; 2],
            late: None,
            losses: self.losses,
            pauses: self.pauses,
            has_refused: false,
        }]
    }

    fn actions(&self, _state: &TurningTenant, actions: &mut Vec<Action>) {
        for of in 0..2 {
            actions.extend([Action::ReadKeys(of), Action::AppendPage(of), Action::Write(of)]);
            actions.extend([Action::LoseAnswer(of), Action::TakeLease(of), Action::LearnKeys(of)]);
            actions.extend([Action::TurnKey(of), Action::Compact(of)]);
        }
        actions.extend([Action::AppendLate, Action::Rewrap]);
    }

    fn next_state(&self, last: &TurningTenant, action: Action) -> Option<TurningTenant> {
        let mut state = *last;
        let next = &mut state;
        match action {
            Action::ReadKeys(writer) => Self::read_keys(next, writer),
            Action::AppendPage(writer) => self.append_page(next, writer),
            Action::Write(writer) => self.write(next, writer),
            Action::LoseAnswer(writer) => Self::lose_answer(next, writer),
            Action::AppendLate => self.append_late(next),
            Action::TakeLease(compactor) => self.take_lease(next, compactor),
            Action::LearnKeys(compactor) => self.learn_keys(next, compactor),
            Action::TurnKey(compactor) => self.turn_key(next, compactor),
            Action::Compact(compactor) => self.compact(next, compactor),
            Action::Rewrap => self.rewrap(next),
        }?;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(OPENS, |_, state: &TurningTenant| {
                state.sealing_keys() & !state.file.keys == 0
            }),
            Property::always(ONCE, |_, state: &TurningTenant| {
                state.stored.iter().all(|ids| ids.count_ones() <= 1)
            }),
            Property::always(KEPT, |_, state: &TurningTenant| {
                let mut all = state.writers.iter().zip(state.stored);
                all.all(|(writer, ids)| *writer != Writer::Acknowledged || ids != 0)
            }),
            Property::sometimes(SUCCESS, |model: &Self, state: &TurningTenant| {
                let is_done = state.writers == [Writer::Acknowledged; 2] && state.page.is_some();
                is_done && state.has_refused && state.file == KeyFile::of(model.turns)
            }),
        ]
    }
}

const OPENS: &str = "a key in the key file opens everything that is stored";
const ONCE: &str = "no batch is stored twice";
const KEPT: &str = "an acknowledged batch is stored";
const SUCCESS: &str = "a refused batch is stored, and the last key is the only key";
