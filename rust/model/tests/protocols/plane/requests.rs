//! Steps of writers and of a reader. Each returns `None` if it cannot happen now.

use super::state::{BLOCKS, Entry, Reader, SEGMENTS, Tenant, Writer, up_to};
use super::{Flaw, Plane};

impl Plane {
    /// `NamesRegistry::register`: `ClusterStore::append_page` by compare-and-swap, or `follow_in`.
    pub(super) fn register(&self, state: &mut Tenant, writer: usize) -> Option<()> {
        let Writer::Start { pages } = state.writers[writer] else { return None };
        let tables = &mut state.tables;
        state.writers[writer] = if pages > 0 {
            Writer::Named
        } else if pages == tables.pages || self.flaw == Some(Flaw::NamesWithoutCompare) {
            tables.pages += 1;
            Writer::Named
        } else {
            Writer::Start { pages: tables.pages }
        };
        Some(())
    }

    /// `CommitParameters::send`. `is_done` tells if the statement takes effect, and `is_answered` if
    /// its answer arrives.
    pub(super) fn append(
        state: &mut Tenant,
        writer: usize,
        is_done: bool,
        is_answered: bool,
    ) -> Option<()> {
        let (hour, is_first) = match state.writers[writer] {
            Writer::Named => (state.hour, true),
            Writer::Doubtful { hour } => (hour, false),
            _ => return None,
        };
        if !is_answered {
            state.losses = state.losses.checked_sub(1)?;
        }
        let (own, last) = (writer as u8, state.tables.last());
        // The ids of blocks are unique in the table of their hour.
        let is_stored = state.tables.batch(own) & state.tables.log != 0;
        if is_done && !is_stored {
            for at in last..last + BLOCKS {
                *state.tables.entries.get_mut(at as usize)? = Some(Entry { writer: own, hour });
                state.tables.log |= 1 << at;
            }
        }
        state.writers[writer] = match (is_answered, is_first) {
            (true, _) => Writer::Acknowledged,
            (false, true) => Writer::Doubtful { hour },
            (false, false) => Writer::GivenUp,
        };
        Some(())
    }

    /// The next hour begins. Attempts at an append end within seconds, so none is of the hour
    /// before.
    pub(super) fn next_hour(&self, state: &mut Tenant) -> Option<()> {
        let is_late =
            |writer: &Writer| matches!(writer, Writer::Doubtful { hour } if *hour < state.hour);
        (state.hour < self.hours && !state.writers.iter().any(is_late)).then_some(())?;
        state.hour += 1;
        Some(())
    }

    /// `ClusterStore::news`: numbers, manifest and entries in one statement.
    pub(super) fn view(&self, state: &mut Tenant) -> Option<()> {
        let tables = &state.tables;
        let (segments, compacted) = (tables.manifest, tables.compacted);
        state.reader = match state.reader {
            Reader::Idle => {
                let acknowledged =
                    (0..2).filter(|writer| state.writers[*writer as usize] == Writer::Acknowledged);
                let expected = acknowledged.fold(0, |rows, writer| rows | tables.batch(writer));
                (expected != 0).then_some(())?;
                if self.flaw == Some(Flaw::ViewInTwo) {
                    Reader::Manifest { expected, segments, compacted }
                } else {
                    let entries = tables.log & !up_to(compacted);
                    Reader::View { expected, segments, compacted, entries }
                }
            }
            Reader::Manifest { expected, segments, compacted: first } => {
                let entries = tables.log & !up_to(compacted);
                Reader::View { expected, segments, compacted: first, entries }
            }
            Reader::View { .. } => return None,
        };
        Some(())
    }

    /// `ClusterStore::segment_part`: reads the segments of the view. A missing object is an error.
    pub(super) fn read(state: &mut Tenant) -> Option<()> {
        let Reader::View { expected, segments, entries, .. } = state.reader else { return None };
        state.reader = Reader::Idle;
        let mut ids = (0..SEGMENTS).filter(|id| segments & 1 << id != 0);
        if ids.any(|id| state.tables.segments[id].rows == 0) {
            return Some(());
        }
        let rows = state.tables.rows_of(segments);
        state.has_stale_read |= expected & !(rows | entries) != 0;
        state.has_double_read |= rows & entries != 0;
        let seen = rows | entries;
        let is_part = |writer: u8| {
            let batch = state.tables.batch(writer);
            batch & seen != 0 && batch & !seen != 0
        };
        state.has_double_read |= is_part(0) || is_part(1);
        Some(())
    }
}
