//! The newest samples as of an instant in the past.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::Reader;
use crate::codec::decode_block;
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::error::Result;
use crate::model::names::SeriesId;
use crate::plane::follower::Snapshot;
use crate::query::latest::Latest;
use crate::storage::manifest::SegmentEntry;

impl Reader {
    /// The newest sample of each entity in `range_ns`, of one measurement or of all.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Stale`] where the snapshot was compacted, and the store's.
    pub(super) fn latest_within(
        &self,
        snapshot: &Snapshot,
        measurement: Option<MeasurementIndex>,
        range_ns: &Range<i64>,
        catalog: &Catalog,
    ) -> Result<Latest> {
        let mut latest = Latest::default();
        // Days are disjoint in time, so the newest that has a row of an entity decides on it.
        let mut missing: BTreeSet<SeriesId> = catalog
            .entities()
            .iter()
            .filter(|entity| measurement.is_none_or(|wanted| wanted == entity.measurement))
            .map(|entity| entity.representative)
            .collect();
        let mut days: Vec<&[SegmentEntry]> =
            snapshot.manifest.segments.chunk_by(|a, b| a.day == b.day).collect();
        while let Some(day) = days.pop().filter(|_| !missing.is_empty()) {
            for entry in day {
                if entry.overlaps(range_ns) {
                    let wanted = (measurement, &missing);
                    self.apply_newest(entry, wanted, range_ns, catalog, &mut latest)?;
                }
            }
            missing.retain(|representative| !latest.has(*representative, range_ns, catalog));
        }
        self.sealed.visit_log(&snapshot.stored, |plain| {
            for table in decode_block(plain)?.tables {
                latest.apply(&table, range_ns, catalog);
            }
            Ok(())
        })?;
        for table in snapshot.recent.iter().flat_map(|tables| tables.iter()) {
            latest.apply(table, range_ns, catalog);
        }
        latest.sort(catalog);
        Ok(latest)
    }

    /// Applies those blocks of a segment that may have the newest row of a wanted entity.
    fn apply_newest(
        &self,
        entry: &SegmentEntry,
        (measurement, wanted): (Option<MeasurementIndex>, &BTreeSet<SeriesId>),
        range_ns: &Range<i64>,
        catalog: &Catalog,
        latest: &mut Latest,
    ) -> Result<()> {
        let open = self.sealed.segment(entry, catalog)?;
        let mut chosen = Vec::new();
        // The time from which on rows of an entity are in blocks chosen already.
        let mut chosen_from_ns: HashMap<SeriesId, i64> = HashMap::new();
        for (index, block) in open.blocks(measurement, range_ns).rev() {
            let (first, last) = (block.first, block.last);
            if wanted.range(first.0..=last.0).next().is_none() {
                continue;
            }
            if first.0 == last.0 {
                // One entity alone: its rows before those chosen are older than its newest.
                let has_newer = chosen_from_ns.get(&first.0).is_some_and(|from| last.1 < *from);
                if first.1 >= range_ns.end || has_newer {
                    continue;
                }
            }
            if first.1 < range_ns.end {
                chosen_from_ns.insert(first.0, first.1);
            }
            chosen.push(index);
        }
        for index in chosen.into_iter().rev() {
            if let Some(table) = self.sealed.block_table(&open, index)? {
                latest.apply(&table, range_ns, catalog);
            }
        }
        Ok(())
    }
}
