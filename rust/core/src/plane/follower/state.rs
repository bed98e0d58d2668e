//! Contents of a plane as of a position in its log. This module neither locks nor reads the store.

use std::ops::Range;
use std::sync::Arc;

use crate::model::batch::{Block, Table};
use crate::model::catalog::Catalog;
use crate::model::clock::CallTime;
use crate::model::time::SECOND_NS;
use crate::plane::caches::Caches;
use crate::plane::caches::recent::RecentTables;
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{DAY_NS, day_of, hour_of};
use crate::storage::tombstone::{Origin, visible};

/// Every instant: keeps all of the newest samples.
pub(in crate::plane) const ALWAYS_NS: Range<i64> = i64::MIN..i64::MAX;

/// Lead over the clock up to which reads follow an ingest instant. A clock that is corrected steps
/// back by no more. A clock that was wrong must not decide for long what is now.
const LEAD_FOLLOWED_NS: i64 = 5 * SECOND_NS;

/// Newest samples, segments and blocks of the log, all as of one position.
#[derive(Default)]
pub(super) struct FollowerState {
    /// `None` if no caller reads rows.
    pub(super) latest: Option<Latest>,
    pub(super) manifest: Arc<Manifest>,
    /// Seconds that rows are kept, 0 for ever.
    pub(super) retention_seconds: u64,
    /// The blocks after [`Manifest::compacted`].
    log: Vec<LogBlock>,
    /// Greatest ingest instant applied. Reads are made after it.
    last_ingest_ns: Option<i64>,
    /// Greatest ingest instant that vouches for a clock, see [`FollowerState::find_vouched_ns`].
    vouched_ns: Option<i64>,
}

/// Times of a block of the log.
struct LogBlock {
    sequence: u64,
    ingest_ns: i64,
    min_time_ns: i64,
    max_time_ns: i64,
}

/// The stored rows that a read must look at, in write order: segments, stored blocks, recent
/// blocks.
#[derive(Default)]
pub(in crate::plane) struct PlaneSnapshot {
    pub(in crate::plane) manifest: Arc<Manifest>,
    /// Position of the last block.
    pub(in crate::plane) position: u64,
    /// Positions of blocks that are no longer in memory.
    pub(in crate::plane) stored: Vec<u64>,
    /// Blocks without hidden rows. Some of them are joined.
    pub(in crate::plane) recent: Vec<RecentTables>,
}

impl PlaneSnapshot {
    /// Returns the tables of the blocks in memory. Rows of an entity are in write order.
    pub(in crate::plane) fn recent_tables(&self) -> impl Iterator<Item = &Table> {
        self.recent.iter().flat_map(RecentTables::iter)
    }

    /// Returns the segments that may have a row in `times_ns`.
    pub(in crate::plane) fn segments_in(
        &self,
        times_ns: &Range<i64>,
    ) -> impl Iterator<Item = &SegmentEntry> {
        self.manifest.segments.iter().filter(|entry| entry.overlaps(times_ns))
    }
}

/// Applies the rows of a block of the log that `manifest` does not hide.
pub(super) fn apply_visible(
    latest: &mut Latest,
    (sequence, tables): (u64, &[Table]),
    manifest: &Manifest,
    catalog: &Catalog,
) {
    let hiding = manifest.hiding(&Origin::Log(sequence));
    for table in tables {
        latest.apply(&visible(table, &hiding, catalog), &ALWAYS_NS, catalog);
    }
}

impl FollowerState {
    /// Adds the next block of the log. The caller sorts the newest samples afterwards.
    pub(super) fn apply(&mut self, sequence: u64, block: &Block, catalog: &Catalog) {
        if let Some(latest) = &mut self.latest {
            apply_visible(latest, (sequence, &block.tables), &self.manifest, catalog);
        }
        let times_ns = block.tables.iter().flat_map(|table| &table.times_ns);
        self.note(sequence, block.ingest_ns, times_ns.map(|time_ns| (*time_ns, *time_ns)));
    }

    /// Adds the next block of the log without its rows, by the smallest and greatest times in it.
    pub(super) fn note(
        &mut self,
        sequence: u64,
        ingest_ns: i64,
        times_ns: impl Iterator<Item = (i64, i64)>,
    ) {
        let widened = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
        if let Some((min_time_ns, max_time_ns)) = times_ns.reduce(widened) {
            self.log.push(LogBlock { sequence, ingest_ns, min_time_ns, max_time_ns });
        }
        self.last_ingest_ns = self.last_ingest_ns.max(Some(ingest_ns));
        self.vouched_ns = match self.vouched_ns {
            Some(vouched_ns) if ingest_ns.saturating_sub(vouched_ns) > DAY_NS => Some(vouched_ns),
            Some(vouched_ns) if vouched_ns.saturating_sub(ingest_ns) <= DAY_NS => {
                Some(vouched_ns.max(ingest_ns))
            }
            _ => self.find_vouched_ns(),
        };
    }

    /// Replaces the newest samples.
    pub(super) fn restart(&mut self, mut latest: Latest, catalog: &Catalog) {
        latest.sort(catalog);
        self.latest = Some(latest);
    }

    /// Replaces the manifest. Forgets blocks that are in its segments and samples that are gone.
    pub(super) fn replace_manifest(&mut self, manifest: Manifest) {
        // The manifest may include blocks that were not applied here.
        self.last_ingest_ns = self.last_ingest_ns.max(Some(manifest.last_ingest_ns));
        self.log.retain(|block| block.sequence > manifest.compacted);
        self.forget_dropped(&manifest);
        self.manifest = Arc::new(manifest);
        self.vouched_ns = self.find_vouched_ns();
    }

    /// Forgets the newest samples of days that retention removed, since a process that opens the
    /// store now does not see them either. Samples that may be in the log stay.
    fn forget_dropped(&mut self, manifest: &Manifest) {
        let Some(latest) = &mut self.latest else { return };
        let logged = merged(self.log.iter().map(|block| (block.min_time_ns, block.max_time_ns)));
        let is_logged = |time_ns| {
            let after = logged.partition_point(|(min_ns, _)| *min_ns <= time_ns);
            after.checked_sub(1).is_some_and(|index| time_ns <= logged[index].1)
        };
        latest.retain(|time_ns| manifest.has_day(day_of(time_ns)) || is_logged(time_ns));
    }

    /// Returns the instant before which rows are no longer kept at `now`. While expiry is held,
    /// rows are kept as they were when the newest row arrived.
    pub(super) fn kept_from_ns(&self, now: CallTime) -> i64 {
        match self.retention_seconds {
            0 => i64::MIN,
            seconds => self.ago_ns(seconds, now),
        }
    }

    /// Returns the instant before which hours are no longer kept at `now`, or `None` if hours do
    /// not outlive their rows.
    pub(super) fn hours_from_ns(&self, now: CallTime) -> Option<i64> {
        let seconds = self.manifest.hours.seconds;
        (seconds > 0).then(|| hour_of(self.ago_ns(seconds, now)))
    }

    /// Returns the instant `seconds` before `now`, or before the newest row if the clock is in doubt.
    fn ago_ns(&self, seconds: u64, now: CallTime) -> i64 {
        let ago_ns = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND_NS);
        self.doubted_from_ns(now).unwrap_or(now.ns).saturating_sub(ago_ns)
    }

    /// Returns the newest ingest instant if retention hides rows and the clock is in doubt. No row
    /// expires then (O2).
    pub(super) fn expiry_held_at_ns(&self, now: CallTime) -> Option<i64> {
        self.doubted_from_ns(now).filter(|_| self.retention_seconds > 0)
    }

    /// Returns the newest ingest instant if `now` is more than a day ahead of it and is not
    /// believed. The clock may have jumped then.
    pub(super) fn doubted_from_ns(&self, now: CallTime) -> Option<i64> {
        if now.is_believed {
            return None;
        }
        self.vouched_ns.filter(|vouched_ns| now.ns.saturating_sub(*vouched_ns) > DAY_NS)
    }

    /// Returns the newest ingest instant that vouches for a clock.
    pub(super) fn newest_ingest_ns(&self) -> Option<i64> {
        self.vouched_ns
    }

    /// Finds the newest ingest instant. Instants that follow a gap of more than a day do not count,
    /// because they came from the clock in doubt. Example: of 1, 2 and 9 September it returns 2
    /// September.
    fn find_vouched_ns(&self) -> Option<i64> {
        let of_log = self.log.iter().map(|block| block.ingest_ns);
        let of_segments =
            self.manifest.segments.iter().map(|entry| entry.ingest_s.saturating_mul(SECOND_NS));
        let known = of_log.chain(of_segments).chain([self.manifest.last_ingest_ns]);
        let mut known: Vec<i64> = known.filter(|ingest_ns| *ingest_ns > 0).collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        let is_gap = |pair: &&[i64]| pair[0].saturating_sub(pair[1]) > DAY_NS;
        known.windows(2).find(is_gap).map(|pair| pair[1]).or_else(|| known.first().copied())
    }

    /// Returns `clock_ns`, or the instant after every applied block whose clock was not far ahead.
    /// Example: if the last block was ingested at 3 s and `clock_ns` is 1 s, it returns 3 s + 1 ns.
    pub(super) fn read_instant(&self, clock_ns: i64) -> i64 {
        let followed_until_ns = clock_ns.saturating_add(LEAD_FOLLOWED_NS);
        let is_followed = |ingest_ns: &i64| *ingest_ns <= followed_until_ns;
        let last_ns = match self.last_ingest_ns {
            // A clock was wrong: rows written under a better clock are among the last blocks.
            Some(last_ns) if !is_followed(&last_ns) => {
                self.log.iter().map(|block| block.ingest_ns).filter(is_followed).max()
            }
            last_ns => last_ns,
        };
        last_ns.map_or(clock_ns, |last_ns| clock_ns.max(last_ns.saturating_add(1)))
    }

    /// Returns how far the last ingest instant is ahead of `clock_ns`, or 0 if reads follow it.
    pub(super) fn ingest_lead_ns(&self, clock_ns: i64) -> i64 {
        let last_ns = self.last_ingest_ns.unwrap_or(i64::MIN);
        Some(last_ns.saturating_sub(clock_ns)).filter(|lead| *lead > LEAD_FOLLOWED_NS).unwrap_or(0)
    }

    /// Returns the ingest instant of the log's oldest block.
    pub(super) fn oldest_ingest_ns(&self) -> Option<i64> {
        self.log.iter().map(|block| block.ingest_ns).min()
    }

    /// Returns the segments, and the blocks of the log with a row in `range_ns`, perhaps with some
    /// blocks more.
    pub(super) fn snapshot(&self, range_ns: &Range<i64>, caches: &Caches) -> PlaneSnapshot {
        let overlaps = |block: &&LogBlock| {
            block.max_time_ns >= range_ns.start && block.min_time_ns < range_ns.end
        };
        let mut stored: Vec<u64> =
            self.log.iter().filter(overlaps).map(|block| block.sequence).collect();
        let (recent, count) = caches.recent().newest_of(&stored);
        stored.truncate(stored.len() - count);
        let position = self.log.last().map_or(self.manifest.compacted, |block| block.sequence);
        PlaneSnapshot { manifest: Arc::clone(&self.manifest), position, stored, recent }
    }
}

/// Merges ranges of times, both ends included, into ascending ranges that do not overlap.
fn merged(ranges: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let overlaps = next.0 <= last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    ranges
}
