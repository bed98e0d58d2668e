//! Scans: all rows that a request asks for, as a stream of batches from one snapshot.
//!
//! If compaction overtakes a read, the read starts again. A stream that has already returned rows
//! cannot. So a stream pins the segments before it looks at the manifest, and no process removes a
//! segment while a pin lives.
//!
//! No pin keeps the log: its rows are copied before the stream begins, and sorted as compaction
//! sorts them. Rows of the last round stay in memory. Earlier rounds go to private segments of the
//! stream, which no manifest names and which are removed with the stream.
//!
//! A segment that several days share is small. Its rows come into memory with the first of these
//! days.

mod day;
mod source;

mod log_rows;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use self::day::Day;
use self::log_rows::{LogRows, OwnSegments};
use self::source::{RowSource, block_bytes, wanted_blocks};
use super::Reader;
use crate::codec::BlockReader;
use crate::model::batch::Table;
use crate::model::clock::CallTime;
use crate::model::error::{Error, Result};
use crate::model::names::FieldId;
use crate::plane::registry::NamesRegistry;
use crate::plane::sealed::SealedStore;
use crate::query::scan::{PendingRows, ScanBatch, ScanRequest, ScanSchema, ScanSelection};
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{Merge, Representatives, SortedTables, sorted, split_by_day};
use crate::storage::store::SegmentsLock;
use crate::storage::tombstone::Origin;

/// Rows of one snapshot, batch by batch: by day, then by measurement, entity and time. Rows of one
/// entity and instant come in the order in which they were written.
///
/// The stream keeps the store open and its segments on disk as long as it lives.
pub struct RowStream {
    sealed: Arc<SealedStore>,
    registry: Arc<NamesRegistry>,
    representatives: Representatives,
    selection: ScanSelection,
    schema: Arc<ScanSchema>,
    /// Knows which rows of the segments are deleted.
    manifest: Arc<Manifest>,
    days: BTreeMap<i64, Day>,
    current: Option<DayRows>,
    pending: Option<PendingRows>,
    // The fields below are dropped in this order, so segments are removed while the pin is still
    // held.
    _own: OwnSegments,
    _pin: Box<dyn SegmentsLock>,
    _user: Option<Box<dyn Any + Send>>,
}

impl Reader {
    pub(in crate::plane) fn scan(&self, request: &ScanRequest, now: CallTime) -> Result<RowStream> {
        let mut pin = Some(self.sealed.store.pin_segments()?);
        self.follower.follow()?;
        self.retrying(|| {
            let kept_from_ns = self.follower.kept_from_ns(now);
            let snapshot = self.follower.snapshot(&request.times_ns(kept_from_ns));
            // Look at the names after the rows, so that they include the names of all rows.
            let (selection, representatives) = {
                let catalog = &self.registry.names().catalog;
                let selection = ScanSelection::new(request.clone(), kept_from_ns, catalog);
                (selection, Representatives::new(catalog))
            };
            let mut days: BTreeMap<i64, Day> = BTreeMap::new();
            for entry in snapshot.segments_in(selection.times_ns()) {
                days.entry(entry.day).or_default().segments.push(*entry);
            }
            let mut log = LogRows::new(self, &representatives, days);
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
                _user: None,
            })
        })
    }

    /// Returns the columns for the wanted fields that occur in blocks with wanted rows. It looks at
    /// the heads of blocks until it has seen each wanted field, which is soon if records are alike.
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
            let open = self.open_segment(entry)?;
            for index in wanted_blocks(&open, selection) {
                if unseen.is_empty() {
                    break;
                }
                let plain = block_bytes(&self.sealed, &open, index, selection.chooses_series())?;
                let block = BlockReader::open(&plain)?;
                let columns = block.tables().iter().flat_map(|table| &table.columns);
                columns.for_each(|column| see(column.field, &mut unseen));
            }
        }
        ScanSchema::new(seen.into_iter(), &self.registry.names().catalog)
    }
}

/// Rows of the day that the stream is reading.
enum DayRows {
    /// Rows of a single origin, in order already.
    One(RowSource),
    Many(Merge<RowSource>),
}

impl RowStream {
    /// Keeps `user` as long as the stream lives. Example: an owner closes a plane when no handle is
    /// in use, so the stream keeps a handle of the plane.
    #[must_use]
    pub fn keeping(self, user: impl Send + 'static) -> Self {
        Self { _user: Some(Box::new(user)), ..self }
    }

    /// Returns the columns of all batches.
    #[must_use]
    pub fn schema(&self) -> &Arc<ScanSchema> {
        &self.schema
    }

    /// Returns the next rows, or `None` if no rows are left.
    ///
    /// # Errors
    /// Returns [`Error::Closed`] if the plane is closed, [`Error::Corrupt`] or [`Error::Io`].
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
                    let Some(day) = self.next_day()? else { return Ok(None) };
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

    /// Returns the next day. First distributes the rows of a segment that the day shares with later
    /// days.
    fn next_day(&mut self) -> Result<Option<Day>> {
        while let Some((first, mut day)) = self.days.pop_first() {
            if !day.segments.first().is_some_and(SegmentEntry::is_shared) {
                return Ok(Some(day));
            }
            let shared = day.segments.remove(0);
            self.days.insert(first, day);
            let mut rows = self.open_segment(&shared)?;
            while let Some(table) = rows.next_table()? {
                for (day, table) in split_by_day(&table) {
                    self.days.entry(day).or_default().shared.push(table.into_owned());
                }
            }
        }
        Ok(None)
    }

    fn open_day(&self, day: Day) -> Result<DayRows> {
        let in_memory = |tables: Vec<Table>| {
            (!tables.is_empty()).then(|| Ok(RowSource::Tables(tables.into_iter())))
        };
        let segments = day.segments.iter().map(|entry| self.open_segment(entry));
        let sources =
            in_memory(day.shared).into_iter().chain(segments).chain(in_memory(day.tables));
        let mut sources = sources.collect::<Result<Vec<RowSource>>>()?;
        Ok(match sources.pop() {
            Some(only) if sources.is_empty() => DayRows::One(only),
            last => DayRows::Many(Merge::new(sources.into_iter().chain(last))),
        })
    }

    fn open_segment(&self, entry: &SegmentEntry) -> Result<RowSource> {
        let open = self.sealed.segment(entry, &self.registry.names().catalog)?;
        let blocks = wanted_blocks(&open, &self.selection).into_iter();
        let (sealed, schema) = (Arc::clone(&self.sealed), Arc::clone(&self.schema));
        let registry = Arc::clone(&self.registry);
        let hiding = self.manifest.hiding(&Origin::Segment(entry.id));
        let hiding = hiding.into_iter().cloned().collect();
        let chooses_series = self.selection.chooses_series();
        Ok(RowSource::Segment { sealed, schema, registry, open, chooses_series, blocks, hiding })
    }
}
