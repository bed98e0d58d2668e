//! One round: blocks of the log become segments of their days and a new checkpoint.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::layout::RoundLayout;
use super::plan;
use super::rest::DayRest;
use super::{CompactionReport, Compactor};
use crate::codec::Effort;
use crate::model::batch::Table;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::limits::ROUND_VALUES_MAX;
use crate::plane::caches::recent::DecodedBlock;
use crate::plane::follower::ALWAYS_NS;
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry, seconds_of};
use crate::storage::segment::{
    Representatives, RowSpan, SegmentWriter, day_of, newest, partitioned,
};
use crate::storage::tombstone::{Origin, into_visible, visible};

/// Blocks of the log that become segments together.
struct Round {
    blocks: Vec<DecodedBlock>,
    /// Position of the first block.
    first: u64,
    /// Position of the last block.
    last: u64,
}

impl Round {
    /// Adds the next block. Returns the number of its values. 8 bytes of text count as a value.
    fn push(&mut self, block: DecodedBlock) -> usize {
        let values = block.tables.iter().map(Table::weight).sum();
        self.blocks.push(block);
        self.last += 1;
        values
    }

    /// Returns the tables of the blocks, without the rows that `manifest` hides.
    fn visible(&self, manifest: &Manifest, catalog: &Catalog) -> Vec<Cow<'_, Table>> {
        let mut tables = Vec::new();
        for (sequence, block) in (self.first..).zip(&self.blocks) {
            let hiding = manifest.hiding(&Origin::Log(sequence));
            tables.extend(block.tables.iter().map(|table| visible(table, &hiding, catalog)));
        }
        tables
    }

    /// Counts rows and values of the blocks, including hidden rows.
    fn counts(&self) -> (u64, u64) {
        let tables = || self.blocks.iter().flat_map(|block| &*block.tables);
        let columns = tables().flat_map(|table| &table.columns);
        let values = columns.map(|column| column.values.len() as u64).sum();
        (tables().map(|table| table.row_count() as u64).sum(), values)
    }
}

impl Compactor {
    /// Compacts the oldest blocks of the log. The new segments say that their rows arrived by
    /// `vouched_ns` at the latest. Otherwise a clock in doubt would vouch for itself, and all rows
    /// would expire (O2).
    pub(super) fn compact_log(
        &self,
        rest: &DayRest,
        vouched_ns: i64,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let manifest = self.follower.manifest();
        let round = self.take_round(manifest.compacted)?;
        let representatives = Representatives::new(&self.registry.names().catalog);
        let mut next = (*manifest).clone();
        next.compacted = round.last;
        let ingest_ns = round.blocks.iter().map(|block| block.ingest_ns).fold(i64::MIN, i64::max);
        next.last_ingest_ns = next.last_ingest_ns.max(ingest_ns);
        let ingest_s = seconds_of(ingest_ns.min(vouched_ns));
        let (rows, values) = round.counts();
        next.rows += rows;
        next.values += values;
        let tables = round.visible(&manifest, &self.registry.names().catalog);
        let days = partitioned(tables.iter().map(AsRef::as_ref), &representatives)?;
        done.blocks += round.blocks.len() as u64;
        // A later round of the same days would be merged with this one.
        let is_last = round.last == self.follower.position();
        let mut latest = self.follower.checkpoint(&manifest)?;
        let mut layout = RoundLayout::new(days, ingest_s, rest, &mut next);
        done.merged += (manifest.segments.len() - next.segments.len()) as u64;
        let stored = |entries: &[SegmentEntry]| self.stored(entries, &manifest, &representatives);
        while let Some(days) = layout.next_days(stored)? {
            let ingest_s = days.ingest_s;
            let effort = if is_last { rest.effort(days.last, ingest_s) } else { Effort::Low };
            let mut writer = self.begin_segment(&representatives, next.last_ingest_ns, effort)?;
            for tables in days.measurements.into_values() {
                let spans: Vec<_> = tables.iter().map(|table| RowSpan::whole(table)).collect();
                writer.write_measurement(&spans, |rows| {
                    // The checkpoint ignores rows older than an entity's newest row, and repeats of
                    // that row.
                    let newest = newest(rows, &representatives)?;
                    latest.apply(&newest, &ALWAYS_NS, &self.registry.names().catalog);
                    Ok(())
                })?;
            }
            let entry = SegmentEntry::new(&writer.finish()?, ingest_s);
            done.note_written(&entry);
            next.insert(entry);
        }
        self.write_checkpoint(&latest, &mut next, &representatives, done)?;
        self.replace(&manifest, next)
    }

    /// Takes blocks after position `after` that were followed, about [`ROUND_VALUES_MAX`] values.
    ///
    /// # Errors
    /// Returns [`Error::Overtaken`] if another compactor has taken some of the blocks.
    fn take_round(&self, after: u64) -> Result<Round> {
        let followed = self.follower.position();
        let mut round = Round { blocks: Vec::new(), first: after + 1, last: after };
        let mut values = 0;
        while round.last < followed && values < ROUND_VALUES_MAX {
            let recent = self.sealed.caches.recent().get(round.last + 1);
            if let Some(block) = recent {
                values += round.push(block);
                continue;
            }
            let entries = self.sealed.store.log_after(round.last)?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                // The next block is in a segment already: another compactor has put it there.
                if entry.sequence != round.last + 1 {
                    return Err(Error::Overtaken);
                }
                if entry.sequence > followed || values >= ROUND_VALUES_MAX {
                    break;
                }
                values += round.push(self.sealed.open_block(&entry)?.into());
            }
        }
        // The names of a block were registered before the block.
        self.registry.follow()?;
        Ok(round)
    }

    /// Returns the rows of some segments that are not deleted, by the rank of their measurement.
    fn stored(
        &self,
        entries: &[SegmentEntry],
        manifest: &Manifest,
        representatives: &Representatives,
    ) -> Result<Vec<(u32, Table)>> {
        let mut tables = Vec::new();
        for entry in entries {
            let hiding = manifest.hiding(&Origin::Segment(entry.id));
            let segment = self.sealed.open_segment(entry)?;
            for index in 0..segment.blocks().len() {
                for table in segment.block(&*self.sealed.store, index)?.tables {
                    let rank = representatives.rank(&table)?;
                    let names = self.registry.names();
                    tables.push((rank, into_visible(table, &hiding, &names.catalog)));
                }
            }
        }
        Ok(tables)
    }

    /// Writes the newest rows that lie in the days of `next` as the checkpoint of `next`.
    pub(super) fn write_checkpoint(
        &self,
        latest: &Latest,
        next: &mut Manifest,
        representatives: &Representatives,
        done: &mut CompactionReport,
    ) -> Result<()> {
        let mut measurements = BTreeMap::new();
        let mut row_count = 0;
        for (_, table) in latest.tables() {
            if let Some(series) = table.any_series() {
                let rows = table.rows(|time_ns| next.has_day(day_of(time_ns)));
                row_count += rows.row_count() as u64;
                measurements.insert(representatives.rank_of(series)?, rows);
            }
        }
        next.checkpoint = SegmentEntry::default();
        if !plan::is_checkpoint_due(&next.segments, row_count) {
            return Ok(());
        }
        let mut writer = None;
        for rows in measurements.into_values() {
            if rows.row_count() > 0 {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert(self.begin_segment(
                        representatives,
                        next.last_ingest_ns,
                        Effort::Low,
                    )?),
                };
                writer.write_measurement(&[RowSpan::whole(&rows)], |_| Ok(()))?;
            }
        }
        if let Some(writer) = writer {
            next.checkpoint = SegmentEntry::of_checkpoint(&writer.finish()?);
        }
        done.bytes_written += next.checkpoint.bytes;
        Ok(())
    }

    pub(super) fn begin_segment<'l>(
        &'l self,
        representatives: &'l Representatives,
        ingest_ns: i64,
        effort: Effort,
    ) -> Result<SegmentWriter<'l>> {
        let store = &*self.sealed.store;
        SegmentWriter::begin(store, &self.sealed.sealer(), representatives, ingest_ns, effort)
    }
}
