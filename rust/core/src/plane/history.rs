//! The newest samples as of an instant in the past.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::follower::PlaneSnapshot;
use super::sealed::SealedStore;
use crate::codec::decode_block;
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::error::Result;
use crate::model::names::SeriesId;
use crate::query::latest::Latest;
use crate::storage::manifest::SegmentEntry;
use crate::storage::tombstone::{Origin, visible};

/// A look at stored rows, newest first.
pub(super) struct History<'h> {
    pub(super) sealed: &'h SealedStore,
    pub(super) snapshot: &'h PlaneSnapshot,
    pub(super) range_ns: &'h Range<i64>,
    pub(super) catalog: &'h Catalog,
}

impl History<'_> {
    /// Finds the newest sample of each entity in the range. `None` asks for all measurements.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Stale`] if the snapshot was compacted, or the errors
    /// of the store.
    pub(super) fn latest(&self, measurement: Option<MeasurementIndex>) -> Result<Latest> {
        let entities = self.catalog.entities().iter();
        let of_measurement =
            entities.filter(|entity| measurement.is_none_or(|wanted| wanted == entity.measurement));
        let wanted = of_measurement.map(|entity| entity.representative).collect();
        let mut latest = self.latest_in_segments(measurement, wanted)?;
        self.sealed.visit_log(&self.snapshot.stored, |sequence, plain| {
            let hiding = self.snapshot.manifest.hiding(&Origin::Log(sequence));
            for table in decode_block(plain)?.tables {
                latest.apply(&visible(&table, &hiding, self.catalog), self.range_ns, self.catalog);
            }
            Ok(())
        })?;
        for table in self.snapshot.recent_tables() {
            latest.apply(table, self.range_ns, self.catalog);
        }
        latest.sort(self.catalog);
        Ok(latest)
    }

    /// Finds the newest sample in the segments of each entity whose representative series is
    /// wanted. Samples of other entities in the result are not their newest.
    ///
    /// # Errors
    /// Returns the errors of [`Self::latest`].
    pub(super) fn latest_in_segments(
        &self,
        measurement: Option<MeasurementIndex>,
        mut wanted: BTreeSet<SeriesId>,
    ) -> Result<Latest> {
        let mut latest = Latest::default();
        // Days are disjoint in time, so the newest day that has a row of an entity decides on it.
        let mut days: Vec<&[SegmentEntry]> = self.snapshot.manifest.by_days().collect();
        while let Some(day) = days.pop().filter(|_| !wanted.is_empty()) {
            for entry in day {
                if entry.overlaps(self.range_ns) {
                    self.apply_newest(entry, (measurement, &wanted), &mut latest)?;
                }
            }
            wanted.retain(|series| !latest.has(*series, self.range_ns, self.catalog));
        }
        Ok(latest)
    }

    /// Applies the blocks of a segment that may have the newest row of a wanted entity.
    fn apply_newest(
        &self,
        entry: &SegmentEntry,
        (measurement, wanted): (Option<MeasurementIndex>, &BTreeSet<SeriesId>),
        latest: &mut Latest,
    ) -> Result<()> {
        let open = self.sealed.segment(entry, self.catalog)?;
        let hiding = self.snapshot.manifest.hiding(&Origin::Segment(entry.id));
        let is_hidden = |times_ns: &Range<i64>| {
            hiding.iter().any(|tombstone| tombstone.extent.overlaps(times_ns))
        };
        let mut chosen = Vec::new();
        // By entity: time from which on its rows are in blocks that were chosen already.
        let mut chosen_from_ns: HashMap<SeriesId, i64> = HashMap::new();
        for (index, block) in open.blocks(measurement, self.range_ns).rev() {
            let (first, last) = (block.first, block.last);
            if wanted.range(first.0..=last.0).next().is_none() {
                continue;
            }
            if first.0 == last.0 {
                // The block has a single entity: its rows before the chosen rows are older than its
                // newest.
                let has_newer = chosen_from_ns.get(&first.0).is_some_and(|from| last.1 < *from);
                if first.1 >= self.range_ns.end || has_newer {
                    continue;
                }
            }
            // A block with hidden rows may have no visible row that is newer.
            if first.1 < self.range_ns.end
                && !is_hidden(&(block.min_ns..block.max_ns.saturating_add(1)))
            {
                chosen_from_ns.insert(first.0, first.1);
            }
            chosen.push(index);
        }
        for index in chosen.into_iter().rev() {
            if let Some(table) = self.sealed.block_table(&open, index)? {
                let table = visible(&table, &hiding, self.catalog);
                latest.apply(&table, self.range_ns, self.catalog);
            }
        }
        Ok(())
    }
}
