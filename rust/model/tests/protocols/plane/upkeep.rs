//! Steps of compactors and of the sweep. Each returns `None` if it cannot happen now.

use super::state::{Compactor, Reader, SEGMENTS, Segment, Sweeper, Tenant, up_to};
use super::{Flaw, Plane};

impl Plane {
    /// `ClusterStore::take_lease`, then `Follower::follow_heads`.
    pub(super) fn take_lease(state: &mut Tenant, compactor: usize) -> Option<()> {
        let tables = &mut state.tables;
        (state.compactors[compactor] == Compactor::Idle && !tables.is_held).then_some(())?;
        (tables.fence, tables.is_held) = (tables.fence + 1, true);
        let (fence, generation, manifest) = (tables.fence, tables.generation, tables.manifest);
        let is_clean = false;
        state.compactors[compactor] = Compactor::Leased { fence, generation, manifest, is_clean };
        Some(())
    }

    /// A compactor sleeps longer than its lease, or for ever.
    pub(super) fn end_lease(state: &mut Tenant) -> Option<()> {
        state.tables.is_held.then_some(())?;
        state.pauses = state.pauses.checked_sub(1)?;
        state.tables.is_held = false;
        Some(())
    }

    /// `Compactor::remove_orphans`: `LIST` and `RETIRE`.
    pub(super) fn remove_orphans(&self, state: &mut Tenant, compactor: usize) -> Option<()> {
        let Compactor::Leased { fence, generation, manifest, is_clean: false } =
            state.compactors[compactor]
        else {
            return None;
        };
        let is_fenced = self.flaw != Some(Flaw::RetirementWithoutFence);
        for (id, segment) in state.tables.segments.iter_mut().enumerate() {
            let is_orphan = segment.fence > 0 && manifest & 1 << id == 0;
            segment.is_retired |= is_orphan && (!is_fenced || segment.fence <= fence);
        }
        let is_clean = true;
        state.compactors[compactor] = Compactor::Leased { fence, generation, manifest, is_clean };
        Some(())
    }

    /// `ClusterStore::begin_segment`.
    pub(super) fn begin_segment(state: &mut Tenant, compactor: usize) -> Option<()> {
        let Compactor::Leased { fence, generation, manifest, is_clean: true } =
            state.compactors[compactor]
        else {
            return None;
        };
        if state.tables.fence != fence {
            state.compactors[compactor] = Compactor::Idle;
            return Some(());
        }
        let segment = (0..SEGMENTS).find(|id| state.tables.segments[*id].fence == 0)?;
        state.tables.segments[segment] = Segment { fence, is_retired: false, rows: 0 };
        let segment = segment as u8;
        state.compactors[compactor] = Compactor::Begun { fence, generation, manifest, segment };
        Some(())
    }

    /// `ObjectWriter::finish`: the object has the rows of all segments that the manifest names, and
    /// of the log up to a position.
    pub(super) fn finish_segment(
        state: &mut Tenant,
        compactor: usize,
        compacted: u8,
    ) -> Option<()> {
        let Compactor::Begun { fence, generation, manifest, segment } = state.compactors[compactor]
        else {
            return None;
        };
        let tables = &mut state.tables;
        let mut sources = (0..SEGMENTS).filter(|id| manifest & 1 << id != 0);
        let is_readable = sources.all(|id| tables.segments[id].rows != 0);
        // Another compactor may have replaced the manifest since, and hours may be gone.
        let rows = tables.rows_of(manifest) | (tables.log & up_to(compacted));
        (is_readable && rows == up_to(compacted)).then_some(())?;
        tables.segments[segment as usize].rows = rows;
        state.compactors[compactor] =
            Compactor::Written { fence, generation, manifest, segment, compacted };
        Some(())
    }

    /// `ClusterStore::swap_manifest`.
    pub(super) fn replace_manifest(&self, state: &mut Tenant, compactor: usize) -> Option<()> {
        let Compactor::Written { fence, generation, manifest, segment, compacted } =
            state.compactors[compactor]
        else {
            return None;
        };
        let tables = &mut state.tables;
        let has_lease = tables.fence == fence || self.flaw == Some(Flaw::ManifestWithoutFence);
        state.compactors[compactor] = if tables.generation == generation && has_lease {
            tables.generation += 1;
            tables.manifest = 1 << segment;
            tables.compacted = tables.compacted.max(compacted);
            Compactor::Replaced { fence, replaced: manifest }
        } else {
            Compactor::Idle
        };
        Some(())
    }

    /// `Compactor::remove` retires the segments that were replaced. Then the lease is given back.
    pub(super) fn retire(state: &mut Tenant, compactor: usize) -> Option<()> {
        let Compactor::Replaced { fence, replaced } = state.compactors[compactor] else {
            return None;
        };
        for (id, segment) in state.tables.segments.iter_mut().enumerate() {
            segment.is_retired |= replaced & 1 << id != 0;
        }
        if state.tables.fence == fence {
            state.tables.is_held = false;
        }
        state.compactors[compactor] = Compactor::Idle;
        Some(())
    }

    /// `delete_retired`, a day later: no read of a view and no sweep takes so long.
    pub(super) fn delete_object(state: &mut Tenant, id: usize) -> Option<()> {
        let segment = &mut state.tables.segments[id];
        let is_idle = state.reader == Reader::Idle && state.sweeper == Sweeper::Idle;
        (segment.is_retired && segment.rows > 0 && is_idle).then_some(())?;
        segment.rows = 0;
        Some(())
    }

    /// The object store loses an object, but not between the question for it and the removal of the
    /// hour, which nothing can see.
    pub(super) fn lose_object(state: &mut Tenant, id: usize) -> Option<()> {
        let is_named = state.tables.manifest & 1 << id != 0;
        let is_late = matches!(state.sweeper, Sweeper::Found { .. });
        (is_named && state.tables.segments[id].rows > 0 && !is_late).then_some(())?;
        state.damages = state.damages.checked_sub(1)?;
        state.damaged |= std::mem::take(&mut state.tables.segments[id].rows);
        Some(())
    }

    /// `HourPartition::is_needed` and `MADE_SINCE`.
    pub(super) fn check_hour(&self, state: &mut Tenant, hour: u8) -> Option<()> {
        let age = if self.flaw == Some(Flaw::EarlyTrim) { 0 } else { 2 };
        (state.sweeper == Sweeper::Idle && hour + age <= state.hour).then_some(())?;
        let tables = &state.tables;
        let here = tables.log & self::hour(state, hour);
        let is_needed = here & !up_to(tables.compacted) != 0;
        (here != 0 && (!is_needed || self.flaw == Some(Flaw::NeededTrim))).then_some(())?;
        let ids = (0..SEGMENTS).filter(|id| {
            let Segment { fence, is_retired, .. } = tables.segments[*id];
            fence > 0 && !is_retired && tables.manifest & 1 << id != 0
        });
        let segments = ids.fold(0, |all, id| all | 1 << id);
        state.sweeper = Sweeper::Checked { hour, segments };
        Some(())
    }

    /// `planes_lacking` of `held.rs` asks the object store for the segments.
    pub(super) fn look_for_objects(&self, state: &mut Tenant) -> Option<()> {
        let Sweeper::Checked { hour, segments } = state.sweeper else { return None };
        let mut ids = (0..SEGMENTS).filter(|id| segments & 1 << id != 0);
        let is_damaged = ids.any(|id| state.tables.segments[id].rows == 0)
            && self.flaw != Some(Flaw::UnseenTrim);
        state.sweeper = Sweeper::Found { hour, is_damaged };
        Some(())
    }

    /// `HourPartition::remove`, behind `hold` if a segment is missing.
    pub(super) fn drop_hour(state: &mut Tenant) -> Option<()> {
        let Sweeper::Found { hour, is_damaged } = state.sweeper else { return None };
        state.sweeper = Sweeper::Idle;
        if !is_damaged {
            let gone = state.tables.log & self::hour(state, hour);
            let held = state.tables.rows_of(up_to(SEGMENTS as u8));
            state.has_early_trim |= gone & !held != 0;
            state.tables.log &= !gone;
        }
        Some(())
    }
}

/// Returns the sequences of an hour.
fn hour(state: &Tenant, hour: u8) -> u8 {
    let entries = state.tables.entries.iter().enumerate();
    let here = entries.filter(|(_, entry)| entry.is_some_and(|entry| entry.hour == hour));
    here.fold(0, |rows, (at, _)| rows | 1 << at)
}
