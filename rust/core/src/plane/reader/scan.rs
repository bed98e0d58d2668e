//! Scans: all rows that a request wants, as a stream of batches out of one snapshot.
//!
//! A read that compaction overtakes starts anew; a stream that has given rows cannot. So it pins the
//! segments before it looks at the manifest, and no process removes a segment while a pin lives.
//! Nothing pins the log: its rows are copied before the stream begins, sorted as compaction sorts
//! them. Those of one round stay in memory; earlier ones go to segments of the stream's own, which
//! no manifest names and which end with it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Reader;
use crate::codec::{BlockReader, TableReader, decode_block};
use crate::model::batch::{Table, Values};
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::limits::SCAN_ROUND_VALUES_MAX;
use crate::model::names::FieldId;
use crate::plane::follower::Snapshot;
use crate::plane::registry::Registry;
use crate::plane::sealed::SealedStore;
use crate::query::scan::{PendingRows, ScanBatch, ScanRequest, ScanSchema, ScanSelection};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{
    Merge, Part, Representatives, Segment, SegmentWriter, SortedTables, Span, sorted, split_by_day,
};
use crate::storage::store::{SegmentId, SegmentsLock};
use crate::storage::tombstone::{Origin, Tombstone, into_visible};

/// Rows of one snapshot, batch by batch: by day, then by measurement, entity and time. Rows of one
/// entity and instant come in the order in which they were written.
///
/// It keeps the store open and its segments on disk for as long as it lives.
pub struct RowStream {
    sealed: Arc<SealedStore>,
    registry: Arc<Registry>,
    representatives: Representatives,
    selection: ScanSelection,
    schema: Arc<ScanSchema>,
    /// Says which rows of the segments are deleted.
    manifest: Arc<Manifest>,
    days: BTreeMap<i64, Day>,
    current: Option<DayRows>,
    pending: Option<PendingRows>,
    // Dropped in this order: what is removed here needs no other right.
    _own: OwnSegments,
    _pin: Box<dyn SegmentsLock>,
}

/// Wanted rows of one day, in write order.
#[derive(Default)]
struct Day {
    segments: Vec<SegmentEntry>,
    /// Rows of the log, sorted, by rank of their measurement.
    tables: Vec<Table>,
}

/// Tables by the rank of their measurement.
type ByRank<'t> = BTreeMap<u32, Vec<Cow<'t, Table>>>;

/// Segments that a stream made for itself.
struct OwnSegments {
    sealed: Arc<SealedStore>,
    ids: Vec<SegmentId>,
}

impl Drop for OwnSegments {
    fn drop(&mut self) {
        for id in &self.ids {
            // The next compaction does it where this fails.
            drop(self.sealed.store.remove_segment(id));
        }
    }
}

impl Reader {
    pub(in crate::plane) fn scan(&self, request: &ScanRequest, now_ns: i64) -> Result<RowStream> {
        let mut pin = Some(self.sealed.store.pin_segments()?);
        self.follower.follow()?;
        self.retrying(|| {
            let kept_from_ns = self.follower.kept_from_ns(now_ns);
            let (selection, representatives) = {
                let catalog = &self.registry.names().catalog;
                let selection = ScanSelection::new(request.clone(), kept_from_ns, catalog);
                (selection, Representatives::new(catalog))
            };
            let snapshot = self.follower.snapshot(selection.times_ns());
            let mut days: BTreeMap<i64, Day> = BTreeMap::new();
            for entry in snapshot.segments_in(selection.times_ns()) {
                days.entry(entry.day).or_default().segments.push(*entry);
            }
            let own = OwnSegments { sealed: Arc::clone(&self.sealed), ids: Vec::new() };
            let mut log = LogRows { reader: self, representatives: &representatives, days, own };
            log.take(&snapshot, &selection)?;
            let LogRows { days, own, .. } = log;
            let schema = Arc::new(self.schema(&days, &selection)?);
            let pin = pin.take().ok_or(Error::Stale)?;
            Ok(RowStream {
                sealed: Arc::clone(&self.sealed),
                registry: Arc::clone(&self.registry),
                representatives,
                selection,
                schema,
                manifest: snapshot.manifest,
                days,
                current: None,
                pending: None,
                _own: own,
                _pin: pin,
            })
        })
    }

    /// The columns for those wanted fields that occur in blocks with wanted rows. It looks at the
    /// heads of blocks until each wanted field was seen, which is soon where records are alike.
    fn schema(&self, days: &BTreeMap<i64, Day>, selection: &ScanSelection) -> Result<ScanSchema> {
        let mut unseen: HashSet<FieldId> = {
            let catalog = &self.registry.names().catalog;
            let fields = catalog.all_fields().filter(|(_, field)| selection.wants_field(field));
            fields.map(|(id, _)| id).collect()
        };
        let mut seen: Vec<FieldId> = Vec::new();
        let mut see = |field: FieldId, unseen: &mut HashSet<FieldId>| {
            if unseen.remove(&field) {
                seen.push(field);
            }
        };
        for table in days.values().flat_map(|day| &day.tables) {
            table.columns.iter().for_each(|column| see(column.field, &mut unseen));
        }
        for entry in days.values().flat_map(|day| &day.segments) {
            if unseen.is_empty() {
                break;
            }
            let segment = self.sealed.open_segment(entry)?;
            let blocks = wanted_blocks(&segment, selection, &self.registry.names().catalog)?;
            for index in blocks {
                if unseen.is_empty() {
                    break;
                }
                self.sealed.store.check_open()?;
                let plain = segment.read(&*self.sealed.store, Part::Block(index))?;
                let block = BlockReader::open(&plain)?;
                let columns = block.tables().iter().flat_map(|table| &table.columns);
                columns.for_each(|column| see(column.field, &mut unseen));
            }
        }
        ScanSchema::new(seen.into_iter(), &self.registry.names().catalog)
    }
}

/// The log of a snapshot on its way into the days of a stream.
struct LogRows<'r> {
    reader: &'r Reader,
    representatives: &'r Representatives,
    days: BTreeMap<i64, Day>,
    own: OwnSegments,
}

impl LogRows<'_> {
    /// Takes the rows of the log of `snapshot`.
    ///
    /// # Errors
    /// [`Error::Stale`] where compaction took blocks away, [`Error::DiskFull`], the store's.
    fn take(&mut self, snapshot: &Snapshot, selection: &ScanSelection) -> Result<()> {
        let mut round: Vec<Table> = Vec::new();
        let mut weight = 0;
        let reader = self.reader;
        let is_wanted = |table: &Table| {
            let names = reader.registry.names();
            let series = table.series.first().and_then(|series| names.catalog.series(*series));
            series.is_some_and(|series| selection.wants_measurement(series.measurement))
        };
        let mut add = |table: Table| {
            if weight >= SCAN_ROUND_VALUES_MAX {
                weight = 0;
                self.write(&std::mem::take(&mut round))?;
            }
            weight += weight_of(&table);
            round.push(table);
            Ok(())
        };
        reader.sealed.visit_log(&snapshot.stored, |sequence, plain| {
            let hiding = snapshot.manifest.hiding(&Origin::Log(sequence));
            for table in decode_block(plain)?.tables.into_iter().filter(is_wanted) {
                let table = into_visible(table, &hiding, &reader.registry.names().catalog);
                add(table)?;
            }
            Ok(())
        })?;
        for table in snapshot.recent_tables() {
            if is_wanted(table) {
                add(table.clone())?;
            }
        }
        for (day, tables) in self.by_day(&round)? {
            self.days.entry(day).or_default().tables = self.sorted(tables)?;
        }
        Ok(())
    }

    /// Writes a round to a segment of each day.
    fn write(&mut self, round: &[Table]) -> Result<()> {
        let SealedStore { store, sealer, .. } = &*self.reader.sealed;
        for (day, tables) in self.by_day(round)? {
            let mut writer = SegmentWriter::begin_scratch(&**store, sealer, self.representatives)?;
            for table in self.sorted(tables)? {
                writer.write_measurement(&table)?;
            }
            let entry = SegmentEntry::new(day, &writer.finish()?, 0);
            self.own.ids.push(entry.id);
            self.days.entry(day).or_default().segments.push(entry);
        }
        Ok(())
    }

    /// The rows of a round by day, then by rank of their measurement.
    fn by_day<'t>(&self, round: &'t [Table]) -> Result<BTreeMap<i64, ByRank<'t>>> {
        let mut days: BTreeMap<i64, ByRank<'t>> = BTreeMap::new();
        for table in round {
            let rank = self.representatives.rank(table)?;
            for (day, table) in split_by_day(table) {
                days.entry(day).or_default().entry(rank).or_default().push(table);
            }
        }
        Ok(days)
    }

    /// The rows of a day, a sorted table for each measurement.
    fn sorted(&self, of_day: ByRank<'_>) -> Result<Vec<Table>> {
        let of_measurement = |tables: Vec<Cow<'_, Table>>| {
            let spans: Vec<_> = tables.iter().map(|table| Span::whole(table)).collect();
            sorted(&spans, self.representatives)
        };
        of_day.into_values().map(of_measurement).collect()
    }
}

/// Values of a table, texts counted by the doubles that have their bytes.
fn weight_of(table: &Table) -> usize {
    let of_column = |values: &Values| match values {
        Values::Text(texts) => texts.iter().map(|text| 1 + text.len() / 8).sum(),
        values => values.len(),
    };
    table.row_count() + table.columns.iter().map(|column| of_column(&column.values)).sum::<usize>()
}

/// The blocks that may have wanted rows.
fn wanted_blocks(
    segment: &Segment,
    selection: &ScanSelection,
    catalog: &Catalog,
) -> Result<Vec<usize>> {
    let mut wanted = Vec::new();
    for (index, block) in segment.blocks().iter().enumerate() {
        let series = catalog.series(block.first.0);
        let series = series.ok_or(Error::Corrupt { what: "a series without a name" })?;
        if block.overlaps(selection.times_ns())
            && selection.wants_measurement(series.measurement)
            && selection.wants_representative_in(block.first.0..=block.last.0)
        {
            wanted.push(index);
        }
    }
    Ok(wanted)
}

/// Sorted rows of one day and one origin.
enum Source {
    Segment {
        sealed: Arc<SealedStore>,
        schema: Arc<ScanSchema>,
        registry: Arc<Registry>,
        segment: Segment,
        blocks: std::vec::IntoIter<usize>,
        /// Tombstones that hide rows of it.
        hiding: Vec<Tombstone>,
    },
    Log(std::vec::IntoIter<Table>),
}

impl SortedTables for Source {
    fn next_table(&mut self) -> Result<Option<Table>> {
        match self {
            Self::Log(tables) => Ok(tables.next()),
            Self::Segment { sealed, schema, registry, segment, blocks, hiding } => {
                let hiding: Vec<&Tombstone> = hiding.iter().collect();
                for index in blocks {
                    sealed.store.check_open()?;
                    let plain = segment.read(&*sealed.store, Part::Block(index))?;
                    let table = wanted_columns(&BlockReader::open(&plain)?.table(0)?, schema)?;
                    if hiding.is_empty() {
                        return Ok(Some(table));
                    }
                    let table = into_visible(table, &hiding, &registry.names().catalog);
                    if table.row_count() > 0 {
                        return Ok(Some(table));
                    }
                }
                Ok(None)
            }
        }
    }

    fn has_more(&self) -> bool {
        match self {
            Self::Log(tables) => tables.len() > 0,
            Self::Segment { blocks, .. } => blocks.len() > 0,
        }
    }
}

/// The rows of a table, with the columns of a schema.
fn wanted_columns(table: &TableReader<'_>, schema: &ScanSchema) -> Result<Table> {
    let mut columns = Vec::new();
    for (index, head) in table.head().columns.iter().enumerate() {
        if schema.column_of(head.field).is_some() {
            columns.push(table.column(index)?);
        }
    }
    Ok(Table { series: table.series(), times_ns: table.times_ns()?, columns })
}

/// Rows of the day that is being read.
enum DayRows {
    /// They have one origin and are in order already.
    One(Source),
    Many(Merge<Source>),
}

impl RowStream {
    /// The columns of all batches.
    #[must_use]
    pub fn schema(&self) -> &Arc<ScanSchema> {
        &self.schema
    }

    /// The next rows, `None` where there is none left.
    ///
    /// # Errors
    /// [`Error::Closed`] once the plane is closed, [`Error::Corrupt`], [`Error::Io`].
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        loop {
            self.sealed.store.check_open()?;
            if let Some(pending) = &mut self.pending {
                let batch = pending.next_batch(&self.schema, &self.registry.names().catalog)?;
                if pending.is_empty() {
                    self.pending = None;
                }
                return Ok(Some(batch));
            }
            let table = match &mut self.current {
                None => {
                    let Some((_, day)) = self.days.pop_first() else { return Ok(None) };
                    self.current = Some(self.open_day(day)?);
                    continue;
                }
                Some(DayRows::One(source)) => source.next_table()?,
                Some(DayRows::Many(merge)) => merge
                    .step(&self.representatives, |_, spans| sorted(spans, &self.representatives))?,
            };
            match table {
                None => self.current = None,
                Some(table) => {
                    let catalog = &self.registry.names().catalog;
                    self.pending = PendingRows::new(table, &self.selection, &self.schema, catalog)?;
                }
            }
        }
    }

    fn open_day(&self, day: Day) -> Result<DayRows> {
        let mut sources = Vec::new();
        for entry in &day.segments {
            let segment = self.sealed.open_segment(entry)?;
            let catalog = &self.registry.names().catalog;
            let blocks = wanted_blocks(&segment, &self.selection, catalog)?.into_iter();
            let (sealed, schema) = (Arc::clone(&self.sealed), Arc::clone(&self.schema));
            let registry = Arc::clone(&self.registry);
            let hiding = self.manifest.hiding(&Origin::Segment(entry.id));
            let hiding = hiding.into_iter().cloned().collect();
            sources.push(Source::Segment { sealed, schema, registry, segment, blocks, hiding });
        }
        if !day.tables.is_empty() {
            sources.push(Source::Log(day.tables.into_iter()));
        }
        Ok(match sources.pop() {
            Some(only) if sources.is_empty() => DayRows::One(only),
            last => DayRows::Many(Merge::new(sources.into_iter().chain(last))),
        })
    }
}
