//! Compaction: the log into segments, small segments into larger ones, old ones away.
//!
//! All work is done before the one short transaction that replaces the manifest, so writers wait
//! for that at most. Whatever a compactor leaves that no manifest names is removed by the next.

mod upcoming;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::caches::recent::DecodedBlock;
use super::{ALWAYS_NS, Plane};
use crate::model::batch::Table;
use crate::model::error::{Error, Result};
use crate::model::limits::{LOG_BYTES_DUE, ROUND_VALUES_MAX};
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::seal::Kind;
use crate::storage::segment::{
    Representatives, SegmentWriter, Span, day_of, merge, newest, sorted, split_by_day,
};

pub use upcoming::Upcoming;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Blocks of the log that are in segments now.
    pub blocks: u64,
    /// Segments that were merged into others.
    pub merged: u64,
    /// Segments that retention removed.
    pub expired: u64,
    /// Bytes written into segments.
    pub bytes_written: u64,
}

/// When the log is to be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Now, as it stands, however little it is.
    Now,
    /// When it is large, or when its oldest block is so old.
    LargeOrAged {
        /// In nanoseconds.
        age_ns: i64,
    },
}

/// Blocks of the log that become segments together.
struct Round {
    blocks: Vec<DecodedBlock>,
    last: u64,
}

/// Rows by the day they lie in, then by the rank of their measurement.
type Days<'t> = BTreeMap<i64, BTreeMap<u32, Vec<Cow<'t, Table>>>>;

impl Plane {
    /// Compacts the log if it is `due` at `now_ns`, merges segments, and removes those that
    /// retention hides. `None` where another process is at it.
    ///
    /// Memory: [`ROUND_VALUES_MAX`] decoded values and twice as much again to sort them, or a block
    /// of each merged segment, and the newest row of each entity.
    ///
    /// # Errors
    /// Those of [`Self::follow`], [`Error::DiskFull`]; what is stored is as it was before.
    pub fn compact(&self, due: Due, now_ns: i64) -> Result<Option<Compacted>> {
        self.follow()?;
        let mut done = Compacted::default();
        let upto = self.store.head()?;
        if due != Due::Now && !self.is_due(due, now_ns)? {
            return Ok(Some(done));
        }
        let Some(_lock) = self.store.lock_compaction()? else { return Ok(None) };
        // Another compactor may have been at work until now.
        self.follow()?;
        self.remove_orphans()?;
        while self.manifest().compacted < upto && self.is_log_due(due, now_ns)? {
            self.compact_log(&mut done)?;
        }
        self.expire(now_ns, &mut done)?;
        while let Some(segments) = mergeable(&self.manifest(), first_open_day(due, now_ns)) {
            self.merge_segments(&segments, &mut done)?;
        }
        Ok(Some(done))
    }

    fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.state().manifest)
    }

    fn is_due(&self, due: Due, now_ns: i64) -> Result<bool> {
        let manifest = self.manifest();
        let kept_from_ns = self.kept_from_ns(now_ns);
        let has_expired = !expired_days(&manifest, kept_from_ns).is_empty();
        let is_mergeable = mergeable(&manifest, first_open_day(due, now_ns)).is_some();
        Ok(has_expired || is_mergeable || self.is_log_due(due, now_ns)?)
    }

    /// A round rewrites the checkpoint, so the log has to be as large to be worth one.
    fn is_log_due(&self, due: Due, now_ns: i64) -> Result<bool> {
        let Due::LargeOrAged { age_ns } = due else { return Ok(true) };
        let log_bytes = self.store.counts()?.log_bytes;
        let state = self.state();
        let oldest_ns = state.log.iter().map(|block| block.ingest_ns).min();
        let is_old = oldest_ns.is_some_and(|oldest_ns| now_ns.saturating_sub(oldest_ns) >= age_ns);
        Ok(is_old || log_bytes >= LOG_BYTES_DUE.max(state.manifest.checkpoint.bytes))
    }

    fn remove_orphans(&self) -> Result<()> {
        let named: HashSet<_> = self.manifest().ids().collect();
        for id in self.store.segments()?.into_iter().filter(|id| !named.contains(id)) {
            self.store.remove_segment(&id)?;
        }
        Ok(())
    }

    fn compact_log(&self, done: &mut Compacted) -> Result<()> {
        let manifest = self.manifest();
        let round = self.take_round(manifest.compacted)?;
        let representatives = Representatives::new(&self.names().catalog);
        let mut next = (*manifest).clone();
        next.compacted = round.last;
        let mut days = Days::default();
        for block in &round.blocks {
            next.last_ingest_ns = next.last_ingest_ns.max(block.ingest_ns);
            for table in &*block.tables {
                let rank = representatives.rank(table)?;
                for (day, table) in split_by_day(table) {
                    days.entry(day).or_default().entry(rank).or_default().push(table);
                }
            }
        }
        done.blocks += round.blocks.len() as u64;
        let mut latest = self.load_checkpoint(&manifest)?;
        for (day, measurements) in days {
            let tables = measurements.into_values().map(|tables| {
                let spans: Vec<_> = tables.iter().map(|table| Span::whole(table)).collect();
                sorted(&spans, &representatives)
            });
            let tables = tables.collect::<Result<Vec<_>>>()?;
            for table in &tables {
                // What is older than an entity's newest row changes nothing.
                let newest = newest(table, &representatives)?;
                latest.apply(&newest, &ALWAYS_NS, &self.names().catalog);
            }
            let entry = self.write_segment(day, &tables, &representatives, next.last_ingest_ns)?;
            next.rows += entry.rows;
            next.values += entry.values;
            done.bytes_written += entry.bytes;
            next.insert(entry);
        }
        self.write_checkpoint(&latest, &mut next, &representatives, done)?;
        self.replace(&manifest, next)
    }

    /// Blocks behind position `after` that were followed, [`ROUND_VALUES_MAX`] values and no more
    /// sealed ones than are read at a time.
    fn take_round(&self, after: u64) -> Result<Round> {
        let followed = self.cursor().log;
        let mut round = Round { blocks: Vec::new(), last: after };
        let mut sealed = None;
        let mut values = 0;
        for sequence in after + 1..=followed {
            let recent = self.caches.recent().get(sequence);
            let block = if let Some(block) = recent {
                block
            } else {
                if sealed.is_none() {
                    sealed = Some(self.store.log_after(round.last)?.into_iter());
                }
                let found = sealed.iter_mut().flatten().find(|entry| entry.sequence == sequence);
                let Some(entry) = found else { break };
                self.open_block(&entry)?.into()
            };
            let columns = block.tables.iter().flat_map(|table| &table.columns);
            values += columns.map(|column| column.values.len()).sum::<usize>();
            round.blocks.push(block);
            round.last = sequence;
            if values >= ROUND_VALUES_MAX {
                break;
            }
        }
        Ok(round)
    }

    /// Writes the newest rows that lie in the days of `next`, and names them there.
    fn write_checkpoint(
        &self,
        latest: &Latest,
        next: &mut Manifest,
        representatives: &Representatives,
        done: &mut Compacted,
    ) -> Result<()> {
        let days: HashSet<i64> = next.segments.iter().map(|entry| entry.day).collect();
        let mut measurements = BTreeMap::new();
        for (_, table) in latest.tables() {
            if let Some(series) = table.any_series() {
                measurements.insert(representatives.rank_of(series)?, table);
            }
        }
        let mut writer = None;
        for table in measurements.into_values() {
            let rows = table.rows(|time_ns| days.contains(&day_of(time_ns)));
            if rows.row_count() > 0 {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => {
                        writer.insert(self.begin_segment(representatives, next.last_ingest_ns)?)
                    }
                };
                writer.write_measurement(&sorted(&[Span::whole(&rows)], representatives)?)?;
            }
        }
        next.checkpoint = match writer {
            Some(writer) => SegmentEntry::new(0, &writer.finish()?),
            None => SegmentEntry::default(),
        };
        done.bytes_written += next.checkpoint.bytes;
        Ok(())
    }

    /// Writes a segment of a table of each measurement, all sorted, by their rank.
    fn write_segment(
        &self,
        day: i64,
        tables: &[Table],
        representatives: &Representatives,
        ingest_ns: i64,
    ) -> Result<SegmentEntry> {
        let mut writer = self.begin_segment(representatives, ingest_ns)?;
        for table in tables {
            writer.write_measurement(table)?;
        }
        Ok(SegmentEntry::new(day, &writer.finish()?))
    }

    fn begin_segment<'l>(
        &'l self,
        representatives: &'l Representatives,
        ingest_ns: i64,
    ) -> Result<SegmentWriter<'l>> {
        SegmentWriter::begin(&*self.store, &self.sealer, representatives, ingest_ns)
    }

    /// Removes the days whose newest row is no longer kept, from the checkpoint as well.
    fn expire(&self, now_ns: i64, done: &mut Compacted) -> Result<()> {
        let manifest = self.manifest();
        let expired = expired_days(&manifest, self.kept_from_ns(now_ns));
        if expired.is_empty() {
            return Ok(());
        }
        let mut next = (*manifest).clone();
        next.segments.retain(|entry| !expired.contains(&entry.day));
        done.expired += (manifest.segments.len() - next.segments.len()) as u64;
        let representatives = Representatives::new(&self.names().catalog);
        let latest = self.load_checkpoint(&manifest)?;
        self.write_checkpoint(&latest, &mut next, &representatives, done)?;
        self.replace(&manifest, next)
    }

    fn merge_segments(&self, entries: &[SegmentEntry], done: &mut Compacted) -> Result<()> {
        let manifest = self.manifest();
        let names = self.names();
        let representatives = Representatives::new(&names.catalog);
        let open = entries.iter().map(|entry| self.open_segment(entry, &names.catalog));
        let open = open.collect::<Result<Vec<_>>>()?;
        drop(names);
        let segments: Vec<_> = open.iter().map(|open| &open.segment).collect();
        let ingest_ns = manifest.last_ingest_ns;
        let mut writer =
            SegmentWriter::begin(&*self.store, &self.sealer, &representatives, ingest_ns)?;
        merge(&*self.store, &representatives, &segments, &mut writer)?;
        let merged = SegmentEntry::new(entries[0].day, &writer.finish()?);
        done.bytes_written += merged.bytes;
        done.merged += entries.len() as u64;
        let mut next = (*manifest).clone();
        next.segments.retain(|entry| !entries.contains(entry));
        // They were the last of their day.
        next.insert(merged);
        self.replace(&manifest, next)
    }

    /// Puts `next` in the place of `manifest`, and removes the segments that it no longer names.
    fn replace(&self, manifest: &Manifest, mut next: Manifest) -> Result<()> {
        next.generation = manifest.generation + 1;
        let sealed = self.sealer.seal(Kind::Manifest, &next.encode())?;
        if !self.store.replace_manifest(manifest.generation, &sealed, next.compacted)? {
            // Only the holder of the lock replaces it.
            return Err(Error::Corrupt { what: "the manifest's generation" });
        }
        let named: HashSet<_> = next.ids().collect();
        self.follow()?;
        for id in manifest.ids().filter(|id| !named.contains(id)) {
            self.store.remove_segment(&id)?;
        }
        Ok(())
    }
}

fn expired_days(manifest: &Manifest, kept_from_ns: i64) -> HashSet<i64> {
    let days = manifest.segments.chunk_by(|a, b| a.day == b.day);
    let expired = days.filter(|day| day.iter().all(|entry| entry.max_ns < kept_from_ns));
    expired.map(|day| day[0].day).collect()
}

/// The day from which on more rows are expected: until then days are merged whole.
fn first_open_day(due: Due, now_ns: i64) -> i64 {
    match due {
        Due::Now => i64::MAX,
        Due::LargeOrAged { age_ns } => day_of(now_ns.saturating_sub(age_ns.saturating_mul(2))),
    }
}

/// The last segments of a day that are worth merging: as many as together are nearly four times as
/// large as the largest of them, or a quarter larger once the day is over. So while a day grows a
/// row is rewritten about as often at most as its day can become four times as large, then once,
/// and the number of a day's segments grows with the logarithm of its size.
fn mergeable(manifest: &Manifest, first_open_day: i64) -> Option<Vec<SegmentEntry>> {
    manifest.segments.chunk_by(|a, b| a.day == b.day).find_map(|day| {
        let suffixes = (0..day.len().saturating_sub(1)).map(|start| &day[start..]);
        let mut worth = suffixes.filter(|suffix| {
            let largest = suffix.iter().map(|entry| entry.bytes).max().unwrap_or(0);
            let bytes: u64 = suffix.iter().map(|entry| entry.bytes).sum();
            // Nearly: a merge saves a little, and equals must not miss each other for that.
            let sixteenths = if day[0].day < first_open_day { 20 } else { 62 };
            16 * bytes >= sixteenths * largest
        });
        worth.next().map(<[_]>::to_vec)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(sizes: &[u64], first_open_day: i64) -> Option<Vec<u64>> {
        let mut manifest = Manifest::default();
        for bytes in sizes {
            manifest.insert(SegmentEntry { bytes: *bytes, ..SegmentEntry::default() });
        }
        let entries = mergeable(&manifest, first_open_day)?;
        Some(entries.iter().map(|entry| entry.bytes).collect())
    }

    #[test]
    fn a_merge_makes_four_times_its_largest_segment_at_least() {
        assert_eq!(picked(&[], 0), None);
        assert_eq!(picked(&[5], 0), None);
        assert_eq!(picked(&[5, 5, 5], 0), None);
        assert_eq!(picked(&[5, 5, 5, 5], 0), Some(vec![5, 5, 5, 5]));
        assert_eq!(picked(&[50, 3, 3, 3, 3], 0), Some(vec![3, 3, 3, 3]));
        assert_eq!(picked(&[4, 4, 4, 1, 1, 1, 1], 0), Some(vec![4, 4, 4, 1, 1, 1, 1]));
        assert_eq!(picked(&[1, 100], 0), None);
    }

    #[test]
    fn a_day_that_is_over_becomes_one_segment_but_for_what_comes_late() {
        assert_eq!(picked(&[5, 5], 1), Some(vec![5, 5]));
        assert_eq!(picked(&[16, 4, 4, 1], 1), Some(vec![16, 4, 4, 1]));
        assert_eq!(picked(&[100, 1], 1), None);
        assert_eq!(picked(&[100, 1, 1], 1), Some(vec![1, 1]));
    }

    #[test]
    fn the_segments_of_a_day_stay_few_and_its_rows_are_rewritten_seldom() {
        for (first_open_day, segments_max, rewritten_max) in [(0, 15, 5), (1, 15, 15)] {
            let mut manifest = Manifest::default();
            let mut rewritten = 0;
            for _ in 0..1_000 {
                manifest.insert(SegmentEntry { bytes: 1, ..SegmentEntry::default() });
                while let Some(entries) = mergeable(&manifest, first_open_day) {
                    let bytes = entries.iter().map(|entry| entry.bytes).sum();
                    rewritten += bytes;
                    manifest.segments.truncate(manifest.segments.len() - entries.len());
                    manifest.insert(SegmentEntry { bytes, ..SegmentEntry::default() });
                }
                assert!(manifest.segments.len() <= segments_max);
            }
            assert!(rewritten <= rewritten_max * 1_000, "{rewritten}");
        }
    }
}
