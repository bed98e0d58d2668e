//! Hours that outlive their rows: written when rows expire, merged, and removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::kept::{expired_hours, mergeable_hours};
use super::{CompactionReport, Compactor, unless_overtaken};
use crate::codec::Effort;
use crate::model::aggregate::Statistic;
use crate::model::batch::Table;
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::error::Result;
use crate::model::fold::Fold;
use crate::model::limits::ROUND_VALUES_MAX;
use crate::model::names::{FieldId, SeriesId};
use crate::plane::caches::open_segments::OpenSegment;
use crate::query::{EntityFolds, Selection, WindowRows};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{
    BlockEntry, DAY_NS, HOUR_NS, Representatives, RowSpan, SegmentWriter, hour_of, statistics,
};

/// Segments that are merged while each is shorter than this are merged again. So they take low
/// effort, and only the second merge takes high effort.
const WRITTEN_TWICE_NS: i64 = 8 * DAY_NS;

/// Open segments with the rows that expire, and open segments with hours of the same time.
struct ExpiringRows {
    rows: Vec<(Arc<OpenSegment>, SegmentEntry)>,
    hours: Vec<Arc<OpenSegment>>,
    times_ns: Range<i64>,
}

impl Compactor {
    /// Sets how many seconds hours outlive their rows. 0 removes the kept hours. Returns false if
    /// another process compacts.
    pub(in crate::plane) fn keep_hours(&self, seconds: u64) -> Result<bool> {
        let kept = || -> Result<Option<()>> {
            self.follower.follow_heads()?;
            if self.follower.manifest().hours.seconds == seconds {
                return Ok(Some(()));
            }
            let Some(_lock) = self.sealed.lock_compaction()? else { return Ok(None) };
            self.follower.follow_heads()?;
            let manifest = self.follower.manifest();
            let mut next = (*manifest).clone();
            next.hours.seconds = seconds;
            if seconds == 0 {
                next.hours.segments.clear();
            }
            self.replace(&manifest, next).map(Some)
        };
        Ok(unless_overtaken(kept())?.is_some())
    }

    /// Writes the hours of the rows in `times_ns` of segments that expire together, unless these
    /// hours are no longer kept from `hours_from_ns` on.
    pub(super) fn keep_hours_of(
        &self,
        expiring: &[SegmentEntry],
        (times_ns, hours_from_ns): (Range<i64>, i64),
        next: &mut Manifest,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let bounds = |of: fn(&SegmentEntry) -> i64| expiring.iter().map(of);
        let min_ns = bounds(|entry| entry.min_ns).min().unwrap_or(0).max(times_ns.start);
        let max_ns = bounds(|entry| entry.max_ns).max().unwrap_or(0).min(times_ns.end - 1);
        let end_ns = hour_of(max_ns).saturating_add(HOUR_NS);
        let times_ns = hour_of(min_ns).max(hours_from_ns)..end_ns;
        if times_ns.is_empty() {
            return Ok(());
        }
        self.registry.follow()?;
        let names = self.registry.names();
        let representatives = Representatives::new(&names.catalog);
        let open = |entry: &SegmentEntry| self.sealed.segment(entry, &names.catalog);
        let rows = expiring.iter().map(|entry| Ok((open(entry)?, *entry)));
        let expiring = ExpiringRows {
            rows: rows.collect::<Result<_>>()?,
            hours: next.hours.segments_in(&times_ns).map(open).collect::<Result<_>>()?,
            times_ns,
        };
        let measurements = names.catalog.measurements_by_name();
        drop(names);
        let last_ingest_ns = next.last_ingest_ns;
        // These hours are written again when their segment is merged.
        let mut writer = self.begin_segment(&representatives, last_ingest_ns, Effort::Low)?;
        for measurement in measurements {
            self.write_hours(measurement, &expiring, next, &mut writer)?;
            writer.end_measurement()?;
        }
        let written = writer.finish()?;
        if written.rows == 0 {
            return self.sealed.store.remove_segment(&written.id);
        }
        let entry = SegmentEntry::new(&written, 0);
        done.note_written(&entry);
        next.hours.segments.push(entry);
        Ok(())
    }

    /// Writes the hours of one measurement, some entities at a time.
    fn write_hours(
        &self,
        measurement: MeasurementIndex,
        expiring: &ExpiringRows,
        manifest: &Manifest,
        writer: &mut SegmentWriter<'_>,
    ) -> Result<()> {
        let mut entities: Vec<(SeriesId, EntityIndex)> = {
            let names = self.registry.names();
            let entities = (0..).zip(names.catalog.entities());
            let of_measurement = entities.filter(|(_, entity)| entity.measurement == measurement);
            of_measurement.map(|(index, entity)| (entity.representative, index)).collect()
        };
        entities.sort_unstable();
        let mut start = 0;
        for last in expiring.cuts(measurement) {
            let count = entities[start..].partition_point(|(series, _)| *series <= last);
            let chunk = &entities[start..start + count];
            start += count;
            let folds = self.folds(measurement, chunk, expiring, manifest)?;
            let table = table_of(chunk, &folds);
            if table.row_count() > 0 {
                writer.push(&[RowSpan::whole(&table)])?;
            }
        }
        Ok(())
    }

    /// Returns the hours of some entities that have expiring rows. Rows that came after an hour was
    /// kept are added to the hour.
    fn folds(
        &self,
        measurement: MeasurementIndex,
        chunk: &[(SeriesId, EntityIndex)],
        expiring: &ExpiringRows,
        manifest: &Manifest,
    ) -> Result<Vec<EntityFolds>> {
        let entities: Vec<EntityIndex> = chunk.iter().map(|(_, entity)| *entity).collect();
        let times_ns = expiring.times_ns.clone();
        let selection = |catalog: &Catalog| {
            let tombstones = &manifest.tombstones;
            Selection::of_entities(measurement, &entities, times_ns, tombstones, catalog)
        };
        let selection = selection(&self.registry.names().catalog);
        let kept = |hours: &mut WindowRows| -> Result<()> {
            let mut kept = expiring.hours.iter();
            kept.try_for_each(|open| self.sealed.collect_kept_hours(open, &selection, hours))
        };
        let mut all = WindowRows::of_hours(entities.len());
        kept(&mut all)?;
        for (open, _) in &expiring.rows {
            self.sealed.collect(open, &selection, &mut all)?;
        }
        let mut folds = all.into_folds();
        if !expiring.hours.is_empty() {
            let mut before = WindowRows::of_hours(entities.len());
            kept(&mut before)?;
            remove_unchanged(&mut folds, before.into_folds());
        }
        Ok(folds)
    }

    /// Removes hours that are no longer kept. Returns false if there are none.
    pub(super) fn expire_hours(&self, now_ns: i64, done: &mut CompactionReport) -> Result<bool> {
        let Some(from_ns) = self.follower.hours_from_ns(now_ns.into()) else { return Ok(false) };
        let manifest = self.follower.manifest();
        let Some(entry) = expired_hours(&manifest, from_ns) else { return Ok(false) };
        let is_whole = entry.max_ns < from_ns;
        let left = if is_whole { None } else { self.rows_from(&entry, from_ns, &manifest)? };
        if let Some(left) = &left {
            done.note_written(left);
        }
        done.expired += 1;
        let mut next = (*manifest).clone();
        next.replace(&[entry], left);
        self.replace(&manifest, next)?;
        Ok(true)
    }

    /// Merges neighbouring segments of hours. Returns false if none are worth it.
    pub(super) fn merge_hours(&self, done: &mut CompactionReport) -> Result<bool> {
        let manifest = self.follower.manifest();
        let Some(entries) = mergeable_hours(&manifest) else { return Ok(false) };
        let is_long = entries
            .iter()
            .any(|entry| entry.max_ns.saturating_sub(entry.min_ns) > WRITTEN_TWICE_NS);
        let effort = if is_long { Effort::High } else { Effort::Low };
        self.merge_segments(&entries, effort, done)?;
        Ok(true)
    }
}

impl ExpiringRows {
    /// Returns the last representative series of each piece of the work, ascending. The rows of a
    /// piece have about [`ROUND_VALUES_MAX`] values.
    fn cuts(&self, measurement: MeasurementIndex) -> Vec<SeriesId> {
        let mut blocks: Vec<(SeriesId, u64)> = Vec::new();
        for (open, entry) in &self.rows {
            let values_per_row = entry.values.div_ceil(entry.rows.max(1));
            let of_measurement = open.blocks(Some(measurement), &self.times_ns);
            let values = |block: &BlockEntry| block.rows as u64 * values_per_row;
            blocks.extend(of_measurement.map(|(_, block)| (block.last.0, values(block))));
        }
        blocks.sort_unstable();
        let mut cuts = Vec::new();
        let mut pending = 0;
        for (last, values) in &blocks {
            pending += values;
            if pending >= ROUND_VALUES_MAX as u64 {
                cuts.push(*last);
                pending = 0;
            }
        }
        cuts.extend(blocks.last().map(|(last, _)| *last));
        cuts.dedup();
        cuts
    }
}

/// Removes the hours that are as they were `before`.
fn remove_unchanged(folds: &mut [EntityFolds], before: Vec<EntityFolds>) {
    for (folds, before) in folds.iter_mut().zip(before) {
        let known: HashMap<(FieldId, i64), u64> = before
            .iter()
            .flat_map(|(field, hours)| {
                hours.iter().map(|(hour, fold)| ((*field, *hour), fold.count()))
            })
            .collect();
        for (field, hours) in folds {
            hours.retain(|(hour, fold)| known.get(&(*field, *hour)) != Some(&fold.count()));
        }
    }
}

/// Returns true if a segment of hours has the statistic of a fold. A single sample gives its
/// minimum, its maximum and its sum.
fn is_kept(fold: &Fold, statistic: Statistic) -> bool {
    fold.count() > 1 || !matches!(statistic, Statistic::Min | Statistic::Max | Statistic::Sum)
}

/// Returns the hours as rows: a row for each hour of an entity, and columns of statistics.
fn table_of(chunk: &[(SeriesId, EntityIndex)], folds: &[EntityFolds]) -> Table {
    let mut table = Table::default();
    let mut fields: BTreeMap<FieldId, Vec<(u32, Fold)>> = BTreeMap::new();
    for ((representative, _), of_entity) in chunk.iter().zip(folds) {
        let hours = of_entity.iter().flat_map(|(_, hours)| hours.iter().map(|(hour, _)| *hour));
        let hours: BTreeSet<i64> = hours.collect();
        let rows: HashMap<i64, u32> = hours.iter().copied().zip(row_count(&table)..).collect();
        table.series.extend(hours.iter().map(|_| *representative));
        table.times_ns.extend(hours.iter().map(|hour| hour.saturating_mul(HOUR_NS)));
        for (field, hours) in of_entity {
            let of_field = fields.entry(*field).or_default();
            of_field.extend(hours.iter().map(|(hour, fold)| (rows[hour], *fold)));
        }
    }
    let count = table.row_count();
    for (field, folds) in fields {
        table.columns.extend(statistics::columns(field, &folds, count, is_kept));
    }
    table
}

fn row_count(table: &Table) -> u32 {
    u32::try_from(table.row_count()).expect("hours of a piece of the work")
}
