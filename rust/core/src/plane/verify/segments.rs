//! Verification of segments and the checkpoint against the manifest, the names and each other.

use super::{FIELD_ITSELF, Verification};
use crate::codec::decode_block;
use crate::model::batch::Table;
use crate::model::error::{Error, Result};
use crate::model::names::{FieldId, SeriesId};
use crate::plane::follower::{ALWAYS_NS, MISSING};
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{
    BlockEntry, Representatives, Segment, SegmentPart, day_of, statistics,
};
use crate::storage::tombstone::{Origin, Tombstone, visible};

/// Rank of the measurement, representative series and time of a row. Rows ascend by this key.
type RowKey = (u32, SeriesId, i64);

/// First and last key of the rows of some blocks, and their smallest and greatest time.
#[derive(Clone, Copy)]
struct Bounds {
    first: RowKey,
    last: RowKey,
    min_ns: i64,
    max_ns: i64,
}

impl Bounds {
    fn new(keys: &[RowKey]) -> Option<Self> {
        let times_ns = || keys.iter().map(|key| key.2);
        let (min_ns, max_ns) = (times_ns().min()?, times_ns().max()?);
        Some(Self { first: *keys.first()?, last: *keys.last()?, min_ns, max_ns })
    }

    fn is_listed_as(&self, entry: &BlockEntry) -> bool {
        entry.first == (self.first.1, self.first.2)
            && entry.last == (self.last.1, self.last.2)
            && (entry.min_ns, entry.max_ns) == (self.min_ns, self.max_ns)
    }

    /// Returns the bounds of all rows from these up to the rows of `next`.
    fn extended(self, next: &Self) -> Self {
        let (min_ns, max_ns) = (self.min_ns.min(next.min_ns), self.max_ns.max(next.max_ns));
        Self { first: self.first, last: next.last, min_ns, max_ns }
    }
}

/// Returns the field whose statistic a column of kept hours has.
const FIELD_OF_HOURS: fn(FieldId) -> FieldId =
    |column| statistics::of_column(column).map_or(FieldId::MAX, |(field, _)| field);

impl Verification<'_> {
    pub(super) fn segments(&mut self, manifest: &Manifest) -> Result<()> {
        let representatives = Representatives::new(&self.catalog);
        let mut latest = Latest::default();
        let damages = self.found.damages.len();
        for entry in &manifest.segments {
            self.found.segments += 1;
            let part = format!("segment {}", name_of(entry));
            let hiding = manifest.hiding(&Origin::Segment(entry.id));
            let rows = (&representatives, &*hiding);
            let outcome = self.segment(&part, entry, rows, FIELD_ITSELF, &mut latest);
            let outcome = self.missing(outcome, manifest)?;
            self.note(&part, outcome)?;
        }
        let (rows, values) = (self.found.rows, self.found.values);
        for entry in &manifest.hours.segments {
            let part = format!("hours {}", name_of(entry));
            let rows = (&representatives, &[] as &[_]);
            let outcome = self.segment(&part, entry, rows, FIELD_OF_HOURS, &mut Latest::default());
            let outcome = self.missing(outcome, manifest)?;
            self.note(&part, outcome)?;
        }
        let mut checkpoint = Latest::default();
        if manifest.checkpoint.bytes > 0 {
            let part = format!("checkpoint {}", name_of(&manifest.checkpoint));
            let entry = &manifest.checkpoint;
            let rows = (&representatives, &[] as &[_]);
            let outcome = self.segment(&part, entry, rows, FIELD_ITSELF, &mut checkpoint);
            let outcome = self.missing(outcome, manifest)?;
            self.note(&part, outcome)?;
        }
        (self.found.rows, self.found.values) = (rows, values);
        // An error that follows from damaged rows is not a second damage.
        if manifest.checkpoint.bytes > 0
            && damages == self.found.damages.len()
            && !latest.is_given_by(&checkpoint, &self.catalog)
        {
            self.damaged("checkpoint: it is not what the segments' newest rows give");
        }
        Ok(())
    }

    /// Turns the absence of a file into a damage if the manifest still names the file. A file that
    /// the manifest no longer names may be under a key that was dropped.
    fn missing(&self, outcome: Result<()>, manifest: &Manifest) -> Result<Result<()>> {
        match outcome {
            Err(error @ (Error::Stale | Error::Corrupt { .. })) => {
                let now = self.store.view(u64::MAX, manifest.generation)?.generation;
                if now != manifest.generation {
                    return Err(Error::Stale);
                }
                Ok(Err(if matches!(error, Error::Stale) { MISSING } else { error }))
            }
            outcome => Ok(outcome),
        }
    }

    fn segment(
        &mut self,
        part: &str,
        entry: &SegmentEntry,
        (representatives, hiding): (&Representatives, &[&Tombstone]),
        field_of: fn(FieldId) -> FieldId,
        latest: &mut Latest,
    ) -> Result<()> {
        if self.store.segment_bytes(&entry.id)? != entry.bytes {
            self.damaged(format!("{part}: the file has another length than the manifest says"));
            return Ok(());
        }
        let segment =
            self.opened(|sealer, store| Segment::open(store, sealer, &entry.id, entry.bytes))?;
        let (rows, values) = (self.found.rows, self.found.values);
        let damages = self.found.damages.len();
        let mut bounds: Option<Bounds> = None;
        for (index, listed) in segment.blocks().iter().enumerate() {
            let part = format!("{part}, block {index}");
            let block = segment.block(&*self.store, index);
            let Some(mut block) = self.note(&part, block)? else { continue };
            self.block(&part, &block, field_of);
            let table = block.tables.remove(0);
            let keys = keys_of(&table, representatives)?;
            let Some(found) = Bounds::new(&keys) else {
                self.damaged(format!("{part}: it has no row"));
                continue;
            };
            if !found.is_listed_as(listed) {
                self.damaged(format!("{part}: the index says otherwise"));
            }
            if !keys.is_sorted() || bounds.is_some_and(|before| before.last > found.first) {
                self.damaged(format!("{part}: its rows are out of order"));
            }
            bounds = Some(bounds.map_or(found, |before| before.extended(&found)));
            self.statistics(&part, &segment, index, &table, representatives)?;
            latest.apply(&visible(&table, hiding, &self.catalog), &ALWAYS_NS, &self.catalog);
        }
        // An error that follows from damaged rows is not a second damage.
        if damages == self.found.damages.len() {
            let (rows, values) = (self.found.rows - rows, self.found.values - values);
            let times_ns = bounds.map_or((0, 0), |bounds| (bounds.min_ns, bounds.max_ns));
            self.entry(part, entry, (rows, values), times_ns);
        }
        Ok(())
    }

    /// Checks that the entry of a segment in the manifest agrees with its rows.
    fn entry(
        &mut self,
        part: &str,
        entry: &SegmentEntry,
        (rows, values): (u64, u64),
        (min_ns, max_ns): (i64, i64),
    ) {
        // The entry of the checkpoint has no day.
        let begins_there = entry.day == 0 || day_of(min_ns) == entry.day;
        let listed = (entry.rows, entry.values, entry.min_ns, entry.max_ns);
        if !begins_there || listed != (rows, values, min_ns, max_ns) {
            self.damaged(format!("{part}: the manifest says otherwise"));
        }
    }

    fn statistics(
        &mut self,
        part: &str,
        segment: &Segment,
        index: usize,
        table: &Table,
        representatives: &Representatives,
    ) -> Result<()> {
        let mut stored = None;
        if segment.blocks()[index].has_statistics() {
            let plain = segment.read(&*self.store, SegmentPart::Statistics(index));
            let block = plain.and_then(|plain| decode_block(&plain));
            let part = format!("{part}, statistics");
            let Some(block) = self.note(&part, block)? else { return Ok(()) };
            stored = Some(block.tables);
        }
        if !statistics::agree(stored.as_deref(), table, representatives)? {
            self.damaged(format!("{part}, statistics: they are not those of its rows"));
        }
        Ok(())
    }
}

fn keys_of(table: &Table, representatives: &Representatives) -> Result<Vec<RowKey>> {
    let rank = representatives.rank(table)?;
    let rows = table.series.iter().zip(&table.times_ns);
    rows.map(|(id, time_ns)| Ok((rank, representatives.representative(*id)?, *time_ns))).collect()
}

fn name_of(entry: &SegmentEntry) -> String {
    format!("{:032x}", u128::from_be_bytes(entry.id))
}
