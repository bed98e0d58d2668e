//! The log of one tenant beside its compaction: names by compare-and-swap, leases, manifests, the
//! removal of hours and of objects.
//!
//! A statement is one step here, since the model of a failover shows that it is. An answer may be
//! lost, and any process may sleep between two of its steps, for ever too.

mod state;

mod requests;
mod upkeep;

mod tests;

use stateright::{Model, Property};

use self::state::{BLOCKS, Compactor, Reader, SEGMENTS, Sweeper, Tables, Tenant, Writer};

/// The model and its bounds.
#[derive(Clone, Debug)]
struct Plane {
    /// Hours that pass.
    hours: u8,
    /// Answers that are lost, leases that end too early, objects that are lost.
    losses: u8,
    pauses: u8,
    damages: u8,
    flaw: Option<Flaw>,
}

/// A check that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A page of names is appended although another page came before it.
    NamesWithoutCompare,
    /// `REPLACE` does not ask for the fence.
    ManifestWithoutFence,
    /// `RETIRE` does not ask for the fence.
    RetirementWithoutFence,
    /// A read asks for the manifest and for the log in two statements.
    ViewInTwo,
    /// The sweep removes an hour whose entries are in no manifest.
    NeededTrim,
    /// The sweep does not look for the objects.
    UnseenTrim,
    /// The sweep removes an hour to which an append may still be sent again.
    EarlyTrim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Register(usize),
    Append { writer: usize, is_done: bool, is_answered: bool },
    NextHour,
    View,
    Read,
    TakeLease(usize),
    EndLease,
    RemoveOrphans(usize),
    BeginSegment(usize),
    FinishSegment { compactor: usize, compacted: u8 },
    ReplaceManifest(usize),
    Retire(usize),
    DeleteObject(usize),
    LoseObject(usize),
    CheckHour(u8),
    LookForObjects,
    DropHour,
}

impl Model for Plane {
    type State = Tenant;
    type Action = Action;

    fn init_states(&self) -> Vec<Tenant> {
        vec![Tenant {
            tables: Tables::default(),
            writers: [Writer::Start { pages: 0 }; 2],
            compactors: [Compactor::Idle; 2],
            reader: Reader::Idle,
            sweeper: Sweeper::Idle,
            hour: 0,
            losses: self.losses,
            pauses: self.pauses,
            damages: self.damages,
            damaged: 0,
            has_stale_read: false,
            has_double_read: false,
            has_early_trim: false,
        }]
    }

    /// Each step that may be possible; `next_state` knows the conditions.
    fn actions(&self, state: &Tenant, actions: &mut Vec<Action>) {
        for of in 0..2 {
            actions.push(Action::Register(of));
            let outcomes = [(true, true), (true, false), (false, false)];
            actions.extend(outcomes.map(|(is_done, is_answered)| Action::Append {
                writer: of,
                is_done,
                is_answered,
            }));
            actions.extend([Action::TakeLease(of), Action::RemoveOrphans(of)]);
            actions.extend([Action::BeginSegment(of), Action::ReplaceManifest(of)]);
            actions.push(Action::Retire(of));
            // A half of a batch, or all there is.
            let places = [1, state.tables.last()];
            actions
                .extend(places.map(|compacted| Action::FinishSegment { compactor: of, compacted }));
        }
        actions.extend((0..SEGMENTS).map(Action::DeleteObject));
        actions.extend((0..SEGMENTS).map(Action::LoseObject));
        actions.extend((0..=state.hour).map(Action::CheckHour));
        actions.extend([Action::NextHour, Action::View, Action::Read, Action::EndLease]);
        actions.extend([Action::LookForObjects, Action::DropHour]);
    }

    fn next_state(&self, last: &Tenant, action: Action) -> Option<Tenant> {
        let mut state = *last;
        let next = &mut state;
        match action {
            Action::Register(writer) => self.register(next, writer),
            Action::Append { writer, is_done, is_answered } => {
                Self::append(next, writer, is_done, is_answered)
            }
            Action::NextHour => self.next_hour(next),
            Action::View => self.view(next),
            Action::Read => Self::read(next),
            Action::TakeLease(compactor) => Self::take_lease(next, compactor),
            Action::EndLease => Self::end_lease(next),
            Action::RemoveOrphans(compactor) => self.remove_orphans(next, compactor),
            Action::BeginSegment(compactor) => Self::begin_segment(next, compactor),
            Action::FinishSegment { compactor, compacted } => {
                Self::finish_segment(next, compactor, compacted)
            }
            Action::ReplaceManifest(compactor) => self.replace_manifest(next, compactor),
            Action::Retire(compactor) => Self::retire(next, compactor),
            Action::DeleteObject(id) => Self::delete_object(next, id),
            Action::LoseObject(id) => Self::lose_object(next, id),
            Action::CheckHour(hour) => self.check_hour(next, hour),
            Action::LookForObjects => self.look_for_objects(next),
            Action::DropHour => Self::drop_hour(next),
        }?;
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LOST, |_, state: &Tenant| {
                let tables = &state.tables;
                let there = tables.log | tables.rows_of(tables.manifest) | state.damaged;
                [0, 1].iter().all(|writer| {
                    let rows = tables.batch(*writer);
                    let is_acknowledged = state.writers[*writer as usize] == Writer::Acknowledged;
                    !is_acknowledged || (rows != 0 && rows & !there == 0)
                })
            }),
            Property::always(TWICE, |_, state: &Tenant| {
                [0, 1].iter().all(|writer| {
                    [0, u32::from(BLOCKS)].contains(&state.tables.batch(*writer).count_ones())
                })
            }),
            Property::always(NAMED, |_, state: &Tenant| {
                (0..SEGMENTS).all(|id| {
                    let is_named = state.tables.manifest & 1 << id != 0;
                    !(is_named && state.tables.segments[id].is_retired)
                })
            }),
            Property::always(ONE_NAME, |_, state: &Tenant| state.tables.pages <= 1),
            Property::always(STALE, |_, state: &Tenant| !state.has_stale_read),
            Property::always(WHOLE, |_, state: &Tenant| !state.has_double_read),
            Property::always(TRIMMED, |_, state: &Tenant| !state.has_early_trim),
            Property::sometimes(SUCCESS, |model: &Self, state: &Tenant| {
                let tables = &state.tables;
                let is_trimmed = model.hours < 2 || tables.log == 0;
                is_trimmed && tables.last() == 2 * BLOCKS && tables.compacted == tables.last()
            }),
        ]
    }
}

const LOST: &str = "no acknowledged batch is lost";
const TWICE: &str = "no batch is stored twice";
const NAMED: &str = "the manifest names no segment that was removed";
const ONE_NAME: &str = "a name has one page";
const STALE: &str = "reads have all that was acknowledged before them";
const WHOLE: &str = "a read shows a batch whole and once";
const TRIMMED: &str = "the log keeps what no object holds";
const SUCCESS: &str = "both batches are compacted and trimmed";
