//! Deletes: a tombstone hides rows at once, and compaction removes them later.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::{CompactionReport, Compactor, unless_overtaken};
use crate::codec::BlockReader;
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::error::{Error, Result};
use crate::model::limits::TOMBSTONES_MAX;
use crate::model::names::SeriesId;
use crate::model::time::write_rfc3339;
use crate::plane::caches::open_segments::OpenSegment;
use crate::plane::follower::{ALWAYS_NS, PlaneSnapshot};
use crate::plane::history::History;
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{BlockEntry, Representatives, SegmentPart, filtered, hour_of};
use crate::storage::store::SegmentId;
use crate::storage::tombstone::{Extent, HiddenTimes, Origin, Tombstone};

/// Counts of the rows that a delete hides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteReport {
    /// Number of rows.
    pub rows: u64,
    /// Entities of these rows. An id in two measurements counts twice.
    pub entities: u64,
    /// Measurements of these rows, ascending.
    pub measurements: Vec<String>,
    /// Times of the first and last of these rows.
    pub times_ns: Option<(i64, i64)>,
    /// Number of kept hours whose rows are gone. An hour of an entity counts once.
    pub hours: u64,
}

impl Compactor {
    /// Hides the rows of `extent` that are committed by now from every read of every process. A dry
    /// run only counts them. Returns `None` if another process compacts, or begins to compact in
    /// the meantime.
    pub(in crate::plane) fn delete(
        &self,
        extent: &Extent,
        is_dry_run: bool,
    ) -> Result<Option<DeleteReport>> {
        unless_overtaken(self.delete_alone(extent, is_dry_run))
    }

    fn delete_alone(&self, extent: &Extent, is_dry_run: bool) -> Result<Option<DeleteReport>> {
        self.follower.follow()?;
        let Some(_lock) = self.sealed.lock_compaction()? else { return Ok(None) };
        // Another compactor may have worked until now.
        self.follower.follow()?;
        let snapshot = self.follower.snapshot(&extent.times_ns);
        let names = self.registry.names();
        let mut found = VisibleRows::new(extent, &names.catalog);
        let mut segments = self.find_in_segments(&mut found, &snapshot)?;
        let in_segments = found.entities.iter();
        let in_segments = in_segments.map(|entity| names.catalog.entity(*entity).representative);
        let (in_segments, rows) = (in_segments.collect(), found.rows);
        self.find_in_log(&mut found, &snapshot)?;
        let position = if found.rows > rows { snapshot.position } else { 0 };
        let mut deleted = found.finish();
        let mut hours = VisibleRows::new(extent, &names.catalog);
        segments.extend(self.find_in_hours(&mut hours, &snapshot.manifest)?);
        segments.sort_unstable();
        deleted.hours = hours.rows;
        drop(names);
        if !is_dry_run && deleted.rows + deleted.hours > 0 {
            let extent = extent.clone();
            self.hide(Tombstone { extent, position, segments: segments.into() }, in_segments)?;
        }
        Ok(Some(deleted))
    }

    /// Returns the ids of the segments that have rows of the extent.
    fn find_in_segments(
        &self,
        found: &mut VisibleRows<'_>,
        snapshot: &PlaneSnapshot,
    ) -> Result<Vec<SegmentId>> {
        let mut segments = Vec::new();
        for entry in snapshot.segments_in(&found.extent.times_ns) {
            segments.extend(self.find_in_segment(found, entry, &snapshot.manifest)?);
        }
        Ok(segments)
    }

    /// Returns the id of a segment if it has rows of the extent.
    fn find_in_segment(
        &self,
        found: &mut VisibleRows<'_>,
        entry: &SegmentEntry,
        manifest: &Manifest,
    ) -> Result<Option<SegmentId>> {
        let rows = found.rows;
        let hiding = manifest.hiding(&Origin::Segment(entry.id));
        let open = self.sealed.segment(entry, found.catalog)?;
        for index in found.blocks(&open) {
            self.sealed.store.check_open()?;
            let plain = open.segment.read(&*self.sealed.store, SegmentPart::Block(index))?;
            found.count_block(&plain, &hiding)?;
        }
        Ok((found.rows > rows).then_some(entry.id))
    }

    /// Returns the ids of the segments that have kept hours of the extent.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the extent cuts a kept hour, because its rows are gone.
    fn find_in_hours(
        &self,
        found: &mut VisibleRows<'_>,
        manifest: &Manifest,
    ) -> Result<Vec<SegmentId>> {
        let mut segments = Vec::new();
        let Range { start, end } = found.extent.times_ns;
        for time_ns in [start, end].into_iter().filter(|time_ns| hour_of(*time_ns) != *time_ns) {
            let hour_ns = hour_of(time_ns)..hour_of(time_ns).saturating_add(1);
            let extent = Extent { times_ns: hour_ns, ..found.extent.clone() };
            let mut cut = VisibleRows::new(&extent, found.catalog);
            for entry in manifest.hours.segments_in(&extent.times_ns) {
                if self.find_in_segment(&mut cut, entry, manifest)?.is_some() {
                    return Err(cut_hour(time_ns));
                }
            }
        }
        for entry in manifest.hours.segments_in(&found.extent.times_ns) {
            segments.extend(self.find_in_segment(found, entry, manifest)?);
        }
        Ok(segments)
    }

    fn find_in_log(&self, found: &mut VisibleRows<'_>, snapshot: &PlaneSnapshot) -> Result<()> {
        self.sealed.visit_log(&snapshot.stored, |sequence, plain| {
            found.count_block(plain, &snapshot.manifest.hiding(&Origin::Log(sequence)))
        })?;
        for table in snapshot.recent_tables() {
            found.count(&table.series, &table.times_ns, &[]);
        }
        Ok(())
    }

    /// Adds a tombstone to the manifest, with a checkpoint of the rows that are left. `entities`
    /// have hidden rows in segments; they are given by their representative series.
    fn hide(&self, tombstone: Tombstone, entities: BTreeSet<SeriesId>) -> Result<()> {
        let manifest = self.follower.manifest();
        if manifest.tombstones.len() >= TOMBSTONES_MAX {
            let message = format!(
                "{TOMBSTONES_MAX} deletes wait for their rows to be removed: compact the tenant, \
                 then delete again"
            );
            return Err(Error::Invalid { message });
        }
        let times_ns = tombstone.extent.times_ns.clone();
        let mut next = (*manifest).clone();
        next.tombstones.push(tombstone);
        next.deleted = manifest.generation + 1;
        self.renew_checkpoint(&manifest, &mut next, entities, &times_ns)?;
        self.replace(&manifest, next)
    }

    /// Writes the checkpoint of `next` again if the newest row of one of `entities` lies in
    /// `times_ns`, and is therefore hidden.
    fn renew_checkpoint(
        &self,
        manifest: &Manifest,
        next: &mut Manifest,
        mut entities: BTreeSet<SeriesId>,
        times_ns: &Range<i64>,
    ) -> Result<()> {
        if next.checkpoint.bytes == 0 {
            // Without a checkpoint the segments are read, without their hidden rows.
            return Ok(());
        }
        let before = self.follower.checkpoint(manifest)?;
        let names = self.registry.names();
        let catalog = &names.catalog;
        entities.retain(|series| before.has(*series, times_ns, catalog));
        if entities.is_empty() {
            return Ok(());
        }
        let snapshot =
            PlaneSnapshot { manifest: Arc::new(next.clone()), ..PlaneSnapshot::default() };
        let (sealed, range_ns) = (&*self.sealed, &ALWAYS_NS);
        let history = History { sealed, snapshot: &snapshot, range_ns, catalog };
        let found = history.latest_in_segments(None, entities.clone())?;
        let representatives = Representatives::new(catalog);
        let mut latest = Latest::default();
        for (samples, is_of_entities) in [(&before, false), (&found, true)] {
            for (_, table) in samples.tables() {
                let rows = table.rows(|_| true);
                let rows = filtered(&rows, |row| {
                    let of = representatives.representative(rows.series[row]);
                    of.is_ok_and(|series| entities.contains(&series)) == is_of_entities
                });
                latest.apply(&rows, &ALWAYS_NS, catalog);
            }
        }
        drop(names);
        self.write_checkpoint(&latest, next, &representatives, &mut CompactionReport::default())
    }

    /// Removes the hidden rows of one segment that has some. Returns false if no segment has hidden
    /// rows.
    pub(super) fn purge_segment(&self, done: &mut CompactionReport) -> Result<bool> {
        let manifest = self.follower.manifest();
        let hiding = |entry: &SegmentEntry| manifest.hiding(&Origin::Segment(entry.id));
        let is_hit = |entry: &&SegmentEntry| !hiding(entry).is_empty();
        let mut entries = manifest.segments.iter().chain(&manifest.hours.segments);
        let Some(entry) = entries.find(is_hit).copied() else { return Ok(false) };
        let mut next = (*manifest).clone();
        let is_hidden = hiding(&entry).iter().any(|tombstone| hides_all_of(tombstone, &entry));
        let left =
            if is_hidden { None } else { self.rewritten(&[entry], &manifest, entry.effort())? };
        if let Some(left) = &left {
            done.note_written(left);
        }
        next.replace(&[entry], left);
        done.purged += 1;
        self.replace(&manifest, next)?;
        Ok(true)
    }
}

fn cut_hour(time_ns: i64) -> Error {
    let mut time = Vec::new();
    write_rfc3339(&mut time, time_ns);
    let message = format!(
        "{} lies within an hour whose rows have expired: it can only be deleted as a whole",
        String::from_utf8_lossy(&time)
    );
    Error::Invalid { message }
}

/// Returns true if a tombstone hides every row of a segment, so that the segment need not be read.
fn hides_all_of(tombstone: &Tombstone, entry: &SegmentEntry) -> bool {
    let Extent { times_ns, measurements, entities } = &tombstone.extent;
    let is_named = measurements.is_empty() && entities.is_empty();
    is_named && times_ns.contains(&entry.min_ns) && times_ns.contains(&entry.max_ns)
}

/// Stored rows of an extent that are not hidden so far.
struct VisibleRows<'f> {
    extent: &'f Extent,
    catalog: &'f Catalog,
    /// Representative series of the entities that the extent names. `None` if it names no entity.
    representatives: Option<BTreeSet<SeriesId>>,
    rows: u64,
    entities: HashSet<EntityIndex>,
    measurements: HashSet<MeasurementIndex>,
    times_ns: Option<(i64, i64)>,
}

impl<'f> VisibleRows<'f> {
    fn new(extent: &'f Extent, catalog: &'f Catalog) -> Self {
        let representatives = (!extent.entities.is_empty()).then(|| {
            let ids = || extent.entities.iter();
            let measurements = catalog.measurements_by_name().into_iter();
            let entities =
                measurements.flat_map(|of| ids().filter_map(move |id| catalog.find_entity(of, id)));
            entities.map(|entity| catalog.entity(entity).representative).collect()
        });
        Self {
            extent,
            catalog,
            representatives,
            rows: 0,
            entities: HashSet::new(),
            measurements: HashSet::new(),
            times_ns: None,
        }
    }

    /// Returns the indices of the blocks that may have rows of the extent.
    fn blocks(&self, open: &OpenSegment) -> Vec<usize> {
        let blocks = open.blocks(None, &self.extent.times_ns);
        let is_wanted = |(index, block): &(usize, &BlockEntry)| {
            let measurement = self.catalog.measurement_name(open.measurements[*index]);
            let mut of = self.representatives.iter();
            self.extent.has_measurement(measurement)
                && of.all(|of| of.range(block.first.0..=block.last.0).next().is_some())
        };
        blocks.filter(is_wanted).map(|(index, _)| index).collect()
    }

    fn count_block(&mut self, plain: &[u8], hiding: &[&Tombstone]) -> Result<()> {
        let block = BlockReader::open(plain)?;
        for index in 0..block.tables().len() {
            let table = block.table(index)?;
            self.count(&table.series(), &table.times_ns()?, hiding);
        }
        Ok(())
    }

    fn count(&mut self, series: &[SeriesId], times_ns: &[i64], hiding: &[&Tombstone]) {
        let mut start = 0;
        for run in series.chunk_by(|a, b| a == b) {
            let times_ns = &times_ns[start..start + run.len()];
            start += run.len();
            let Some(of) = self.catalog.series(run[0]) else { continue };
            if !self.extent.has_series(of, self.catalog) {
                continue;
            }
            let extents = hiding.iter().map(|tombstone| &tombstone.extent);
            let hidden =
                HiddenTimes::of(extents.filter(|extent| extent.has_series(of, self.catalog)));
            let is_found = |time_ns: &&i64| {
                self.extent.times_ns.contains(time_ns) && !hidden.contains(**time_ns)
            };
            let found = || times_ns.iter().filter(is_found).copied();
            let Some((first_ns, last_ns)) = found().min().zip(found().max()) else { continue };
            self.rows += found().count() as u64;
            let (min_ns, max_ns) = self.times_ns.unwrap_or((first_ns, last_ns));
            self.times_ns = Some((min_ns.min(first_ns), max_ns.max(last_ns)));
            self.measurements.insert(of.measurement);
            self.entities.extend(of.entity);
        }
    }

    fn finish(self) -> DeleteReport {
        let name = |measurement| self.catalog.measurement_name(measurement).to_owned();
        let mut measurements: Vec<String> = self.measurements.into_iter().map(name).collect();
        measurements.sort_unstable();
        let entities = self.entities.len() as u64;
        let times_ns = self.times_ns;
        DeleteReport { rows: self.rows, entities, measurements, times_ns, hours: 0 }
    }
}
