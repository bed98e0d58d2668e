//! Series: rows and windows of some entities, out of the segments and blocks that overlap.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use super::{Plane, Snapshot};
use crate::aggregate::Interval;
use crate::column::BlockReader;
use crate::error::Result;
use crate::query::answer::{EntityRows, SeriesAnswer};
use crate::query::collector::Collector;
use crate::query::request::SeriesQuery;
use crate::query::select::Selection;
use crate::query::{RawRows, WindowRows};

/// Entities times segments, of a day each at most, from which on a read is shared among threads.
/// Starting a thread takes as long as decoding one entity's day, or the statistics of some more.
const SHARED_FROM: usize = 8;
const SHARED_FROM_OF_HOURS: usize = 128;

impl Plane {
    /// Reads a series as of the clock `now_ns`, which decides what retention hides, and cuts it so
    /// that at most `points_max` rows stay (H23). All entities are read from one snapshot (H34).
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    ///
    /// # Panics
    /// When `points_max` is 0.
    pub fn series(
        &self,
        query: SeriesQuery,
        points_max: usize,
        now_ns: i64,
    ) -> Result<SeriesAnswer> {
        let (channel_names, entities) = self.retrying(|| {
            self.follow()?;
            let start_ns = query.start_ns.max(self.kept_from_ns(now_ns));
            let snapshot = self.state().snapshot(&(start_ns..query.end_ns));
            let mut parts = self.parts(&query, start_ns..query.end_ns, &snapshot);
            let entities = self.read_enough(&query, &mut parts, &snapshot, points_max)?;
            Ok((parts[0].channel_names().map(str::to_owned).collect(), entities))
        })?;
        let mut answer = SeriesAnswer { query, channel_names, entities, next_start_ns: None };
        answer.cut(points_max);
        Ok(answer)
    }

    /// What is wanted, in as many parts as threads should read it, each of some entities. There is
    /// one at least.
    fn parts(
        &self,
        query: &SeriesQuery,
        times_ns: Range<i64>,
        snapshot: &Snapshot,
    ) -> Vec<Selection> {
        let segments = snapshot.manifest.segments.iter();
        let days = segments.filter(|entry| entry.overlaps(&times_ns)).count();
        let entities = query.entity_ids.len();
        let shared_from = match query.windows {
            Some((Interval::OneHour, _)) => SHARED_FROM_OF_HOURS,
            _ => SHARED_FROM,
        };
        let threads = if entities * days < shared_from { 1 } else { processors().min(entities) };
        let names = self.names();
        let select = |ids| Selection::new(query, ids, times_ns.clone(), &names.catalog);
        if threads <= 1 {
            return vec![select(&query.entity_ids)];
        }
        query.entity_ids.chunks(entities.div_ceil(threads)).map(select).collect()
    }

    /// All rows that are wanted, or else more than `points_max` of the first ones.
    fn read_enough(
        &self,
        query: &SeriesQuery,
        parts: &mut [Selection],
        snapshot: &Snapshot,
        points_max: usize,
    ) -> Result<Vec<EntityRows>> {
        if query.windows.is_none()
            && let Some(cut_ns) = self.full_before(parts, snapshot, points_max)?
        {
            for part in parts.iter_mut() {
                part.end_at(cut_ns);
            }
            let entities = self.read_parts(query, parts, snapshot)?;
            // Records of one instant may have become one row (F4), and then these are too few.
            if entities.iter().map(|rows| rows.times_ns.len()).sum::<usize>() > points_max {
                return Ok(entities);
            }
            for part in parts.iter_mut() {
                part.end_at(query.end_ns);
            }
        }
        self.read_parts(query, parts, snapshot)
    }

    /// An instant before which segments hold more than `points_max` wanted records: what comes
    /// later need not be read. `None` where there is no such instant.
    fn full_before(
        &self,
        parts: &[Selection],
        snapshot: &Snapshot,
        points_max: usize,
    ) -> Result<Option<i64>> {
        let mut blocks: Vec<(i64, usize)> = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let times_ns = part.times_ns();
            for entry in snapshot.manifest.segments.iter().filter(|entry| entry.overlaps(times_ns))
            {
                let open = self.open_segment(entry, &self.names().catalog)?;
                for (_, block) in open.blocks(part.measurement(), times_ns) {
                    let alone = block.first.0 == block.last.0;
                    if alone
                        && block.min_ns >= times_ns.start
                        && part.wants_leader_in(block.first.0..=block.last.0)
                    {
                        blocks.push((block.max_ns, block.rows));
                    }
                }
            }
        }
        blocks.sort_unstable();
        let mut records = 0;
        let full = blocks.iter().find(|(_, rows)| {
            records += rows;
            records > points_max
        });
        Ok(full.map(|(max_ns, _)| max_ns.saturating_add(1)))
    }

    /// The rows of all parts, one below the other, each read by a thread of its own.
    fn read_parts(
        &self,
        query: &SeriesQuery,
        parts: &[Selection],
        snapshot: &Snapshot,
    ) -> Result<Vec<EntityRows>> {
        let Some((first, others)) = parts.split_first() else { return Ok(Vec::new()) };
        thread::scope(|scope| {
            let read = |part| self.read_part(query, part, snapshot);
            let others: Vec<_> =
                others.iter().map(|part| scope.spawn(move || read(part))).collect();
            let mut entities = read(first)?;
            for other in others {
                entities.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok(entities)
        })
    }

    fn read_part(
        &self,
        query: &SeriesQuery,
        part: &Selection,
        snapshot: &Snapshot,
    ) -> Result<Vec<EntityRows>> {
        let (entities, channels) = (part.entity_count(), part.channel_count());
        Ok(match query.windows {
            None => {
                let mut rows = RawRows::new(entities, channels);
                self.collect(part, snapshot, &mut rows)?;
                rows.finish()
            }
            Some((interval, aggregation)) => {
                let mut rows = WindowRows::new(entities, channels, interval, aggregation);
                self.collect(part, snapshot, &mut rows)?;
                rows.finish()
            }
        })
    }

    fn collect(
        &self,
        part: &Selection,
        snapshot: &Snapshot,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let times_ns = part.times_ns();
        if part.is_empty() || times_ns.is_empty() {
            return Ok(());
        }
        for entry in snapshot.manifest.segments.iter().filter(|entry| entry.overlaps(times_ns)) {
            self.collect_segment(entry, part, collector)?;
        }
        self.visit_log(&snapshot.stored, |plain| {
            part.collect(&BlockReader::open(plain)?, times_ns, collector)
        })?;
        for table in snapshot.recent.iter().flat_map(|tables| tables.iter()) {
            part.collect_decoded(table, collector);
        }
        Ok(())
    }
}

/// Processors that this process may use. Asked once: the answer comes out of files.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, Into::into))
}
