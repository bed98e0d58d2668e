//! Series: rows and windows of some entities, from the segments and blocks that overlap.

use std::ops::Range;

use super::Reader;
use super::processors::{ReadGuard, in_threads};
use crate::model::aggregate::Interval;
use crate::model::clock::CallTime;
use crate::model::error::Result;
use crate::plane::failure::ReadError;
use crate::plane::follower::PlaneSnapshot;
use crate::query::{
    AnswerBounds, Collector, EntityRows, FieldHours, RawRows, Selection, SeriesAnswer,
    SeriesLimits, SeriesQuery, SeriesRequest, WindowRows, truncate,
};

/// Least product of entities and segments for which a read is shared among threads. Starting a
/// thread takes as long as decoding one entity's day, or as the hourly statistics of some days
/// more.
pub(super) const SHARED_FROM: usize = 8;
const SHARED_FROM_OF_HOURS: usize = 128;

/// Values that a part of a read may hold at least before it ends early. This is enough for a row of
/// each entity of a request, if each row is as wide as a tenant's rows can be.
const VALUES_HELD_MIN: usize = if cfg!(test) { 200 } else { 1 << 21 };

impl Reader {
    pub(in crate::plane) fn answer_series(
        &self,
        request: SeriesRequest,
        limits: &SeriesLimits,
        now: CallTime,
    ) -> Result<SeriesAnswer, ReadError> {
        let query = request.check(limits, self.read_instant(now.ns)?, now.ns)?;
        Ok(self.followed_series(query, limits.bounds(), now)?)
    }

    pub(in crate::plane) fn series(
        &self,
        query: SeriesQuery,
        bounds: AnswerBounds,
        now: CallTime,
    ) -> Result<SeriesAnswer> {
        self.follower.follow()?;
        self.followed_series(query, bounds, now)
    }

    fn followed_series(
        &self,
        query: SeriesQuery,
        bounds: AnswerBounds,
        now: CallTime,
    ) -> Result<SeriesAnswer> {
        let reading = ReadGuard::begin();
        let (entities, next_start_ns) = self.retrying(|| {
            let start_ns = query.start_ns.max(self.kept_from_ns(&query, now));
            let snapshot = self.follower.snapshot(&(start_ns..query.end_ns));
            self.join_recent();
            self.sealed.prefetch(&mut snapshot.segments_in(&(start_ns..query.end_ns)));
            let read = SeriesRead { reader: self, query: &query, snapshot, bounds };
            let mut parts = read.parts(start_ns..query.end_ns, &reading);
            read.read_enough(&mut parts)
        })?;
        let names = self.registry.names();
        let name_of = |field| Some(names.catalog.field(field)?.name.clone());
        Ok(SeriesAnswer::new(query, entities, next_start_ns, name_of))
    }

    /// Returns all statistics of the hours of the entities of `query`, field by field of one entity
    /// after the other.
    pub(in crate::plane) fn hours(
        &self,
        query: &SeriesQuery,
        now: CallTime,
    ) -> Result<Vec<FieldHours>> {
        self.follower.follow()?;
        let folds = self.retrying(|| {
            let times_ns = query.start_ns.max(self.kept_from_ns(query, now))..query.end_ns;
            let snapshot = self.follower.snapshot(&times_ns);
            let (ids, tombstones) = (&query.entity_ids, &snapshot.manifest.tombstones);
            let names = self.registry.names();
            let selection = Selection::new(query, ids, times_ns, tombstones, &names.catalog);
            drop(names);
            let mut hours = WindowRows::of_hours(ids.len());
            self.collect(&snapshot, &selection, &mut hours)?;
            Ok(hours.into_folds())
        })?;
        let names = self.registry.names();
        let named = |(field, hours)| {
            Some(FieldHours { name: names.catalog.field(field)?.name.to_string(), hours })
        };
        Ok(folds.into_iter().flatten().filter_map(named).collect())
    }

    /// Returns the instant before which no answer to `query` is kept.
    fn kept_from_ns(&self, query: &SeriesQuery, now: CallTime) -> i64 {
        let kept_from_ns = self.follower.kept_from_ns(now);
        match (query.windows, self.follower.hours_from_ns(now)) {
            (Some((Interval::OneHour, _)), Some(hours_from_ns)) => kept_from_ns.min(hours_from_ns),
            _ => kept_from_ns,
        }
    }
}

/// A series that is read from one snapshot.
struct SeriesRead<'r> {
    reader: &'r Reader,
    query: &'r SeriesQuery,
    snapshot: PlaneSnapshot,
    bounds: AnswerBounds,
}

impl SeriesRead<'_> {
    /// Splits the wanted rows into parts, each with some entities. Each part is read by a thread.
    fn parts(&self, times_ns: Range<i64>, reading: &ReadGuard) -> Vec<Selection> {
        let segments = self.snapshot.segments_in(&times_ns).count();
        let ids = &self.query.entity_ids;
        let shared_from = match self.query.windows {
            Some((Interval::OneHour, _)) => SHARED_FROM_OF_HOURS,
            _ => SHARED_FROM,
        };
        let names = self.reader.registry.names();
        let select = |ids| {
            let tombstones = &self.snapshot.manifest.tombstones;
            Selection::new(self.query, ids, times_ns.clone(), tombstones, &names.catalog)
        };
        ids.chunks(reading.part_items(ids.len(), segments, shared_from)).map(select).collect()
    }

    /// Returns the wanted rows, cut so that they keep the bounds, and the instant at which they
    /// were cut.
    ///
    /// Reading ends early if there are more rows than an answer may hold. The rows read so far give
    /// an instant before which the answer must end, and the rows before that instant are read
    /// again.
    fn read_enough(&self, parts: &mut [Selection]) -> Result<(Vec<EntityRows>, Option<i64>)> {
        let mut end_ns = self.query.end_ns;
        if self.query.windows.is_none()
            && let Some(full_ns) = self.full_before(parts)?
        {
            end_ns = end_ns.min(full_ns);
        }
        let mut cut_before_ns = None;
        loop {
            for part in parts.iter_mut() {
                part.end_at(end_ns);
            }
            let (mut entities, is_full) = self.read_parts(parts)?;
            let last_ns = entities.iter().filter_map(|rows| rows.times_ns.last()).max().copied();
            match truncate(&mut entities, self.bounds) {
                Some(cut_ns) if is_full && cut_ns < end_ns => {
                    end_ns = cut_ns;
                    cut_before_ns = Some(cut_ns);
                }
                Some(cut_ns) => return Ok((entities, Some(cut_ns))),
                // A single instant fills the collectors: a client cannot ask for the rows beyond.
                None if is_full => {
                    return Ok((entities, last_ns.map(|last| last.saturating_add(1))));
                }
                // Records of one instant may have become one row (F4), so these rows may be too
                // few.
                None if cut_before_ns.is_none() && end_ns < self.query.end_ns => {
                    end_ns = self.query.end_ns;
                }
                None => return Ok((entities, cut_before_ns)),
            }
        }
    }

    /// Returns an instant before which segments hold more wanted records than an answer may have
    /// points: later records need not be read. Returns `None` if there is no such instant.
    fn full_before(&self, parts: &[Selection]) -> Result<Option<i64>> {
        let mut blocks: Vec<(i64, usize)> = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let times_ns = part.times_ns();
            for entry in self.snapshot.segments_in(times_ns) {
                let open = self.reader.open_segment(entry)?;
                for (_, block) in open.blocks(part.measurement(), times_ns) {
                    let is_alone = block.first.0 == block.last.0;
                    if is_alone
                        && block.min_ns >= times_ns.start
                        && part.wants_representative_in(block.first.0..=block.last.0)
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
            records > self.bounds.points_max
        });
        Ok(full.map(|(max_ns, _)| max_ns.saturating_add(1)))
    }

    /// Reads all parts, and returns their rows in the order of the parts. Also returns true if a
    /// part held so many values that it ended early.
    fn read_parts(&self, parts: &[Selection]) -> Result<(Vec<EntityRows>, bool)> {
        let (mut entities, mut is_full) = (Vec::new(), false);
        for part in in_threads(parts, |part| self.read_part(part)) {
            let (rows, full) = part?;
            entities.extend(rows);
            is_full |= full;
        }
        Ok((entities, is_full))
    }

    fn read_part(&self, part: &Selection) -> Result<(Vec<EntityRows>, bool)> {
        let entities = part.entity_count();
        let held_max = self.bounds.values_max.saturating_mul(2).max(VALUES_HELD_MIN);
        Ok(match self.query.windows {
            None => {
                let mut rows = RawRows::new(entities, held_max);
                self.reader.collect(&self.snapshot, part, &mut rows)?;
                let is_full = rows.is_full();
                (rows.finish(), is_full)
            }
            Some((interval, aggregation)) => {
                let mut rows = WindowRows::new(entities, interval, aggregation, held_max);
                self.reader.collect(&self.snapshot, part, &mut rows)?;
                let is_full = rows.is_full();
                (rows.finish(aggregation), is_full)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::model::aggregate::Aggregation;
    use crate::model::limits::WriteLimits;
    use crate::model::time::{SECOND_NS, write_rfc3339};
    use crate::plane::{Acknowledgement, CompactionTrigger, Plane};
    use crate::wire::Format;

    const START_NS: i64 = 1_790_000_000 * SECOND_NS;
    const NOW_NS: i64 = START_NS + 7_200 * SECOND_NS;

    /// Writes a row each second for one of three entities, far from the order of time. Each has
    /// some of many fields. Half of the rows are in segments.
    fn plane() -> Plane {
        let plane = Plane::in_memory("acme").unwrap();
        let mut rows = (0..1_200_i64).map(|at| at * 787 % 1_200);
        for batch in 0..12 {
            let mut body = String::from("[");
            for second in rows.by_ref().take(100) {
                let mut time = Vec::new();
                write_rfc3339(&mut time, START_NS + second * SECOND_NS);
                let time = String::from_utf8(time).unwrap();
                let comma = if body.len() > 1 { "," } else { "" };
                let fields = (0..=second % 7).map(|at| second * (at + 3) % 40);
                let fields: std::collections::BTreeSet<i64> = fields.collect();
                let fields: Vec<String> =
                    fields.iter().map(|field| format!(r#""f{field}":{second}"#)).collect();
                write!(
                    body,
                    r#"{comma}{{"measurement":"link","time":"{time}","tags":{{"entity_id":"{}"}},"fields":{{{}}}}}"#,
                    second % 3,
                    fields.join(","),
                )
                .unwrap();
            }
            body.push(']');
            let limits = WriteLimits::default();
            plane
                .write(Format::Json, body.as_bytes(), &limits, NOW_NS, Acknowledgement::Durable)
                .unwrap();
            if batch == 5 {
                plane.compact(CompactionTrigger::Now, NOW_NS).unwrap();
            }
        }
        plane
    }

    /// N4: a read that holds enough ends early, and answers as if it had read everything.
    #[test]
    fn n4_a_read_that_ends_early_answers_as_one_that_does_not() {
        let plane = plane();
        let intervals = [Interval::FifteenSeconds, Interval::OneMinute, Interval::OneHour];
        let windows = intervals.map(|interval| Some((interval, Aggregation::Max)));
        for windows in windows.into_iter().chain([None]) {
            let query = SeriesQuery {
                entity_ids: ["2", "nobody", "0", "1"].map(str::to_owned).to_vec(),
                start_ns: START_NS - 1_000 * SECOND_NS,
                end_ns: NOW_NS,
                measurement: "link".to_owned(),
                fields: Vec::new(),
                windows,
            };
            let whole = plane.series(query.clone(), AnswerBounds::NONE, NOW_NS).unwrap();
            for values_max in [1, 30, 99, 100, 101, 400, 3_000, 100_000] {
                for points_max in [16, 10_000] {
                    let bounds = AnswerBounds { points_max, values_max };
                    let found = plane.series(query.clone(), bounds, NOW_NS).unwrap();
                    let mut expected = whole.clone();
                    let next_start_ns = truncate(&mut expected.entities, bounds);
                    assert_eq!(found.next_start_ns, next_start_ns, "{windows:?} {bounds:?}");
                    assert_eq!(found.entities, expected.entities, "{windows:?} {bounds:?}");
                }
            }
        }
    }
}
