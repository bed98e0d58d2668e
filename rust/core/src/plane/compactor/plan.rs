//! Work that compaction has left to do, and when, derived only from the manifest and the clock.

use std::collections::HashSet;

use super::growth::{grown, worth_merging};
use super::kept::next_of_hours;
use super::rest::{CompactionTrigger, DayRest, ns_of, over_ns};
use super::sharing;
use crate::codec::Effort;
use crate::model::limits::LOG_BYTES_DUE;
use crate::plane::follower::Backlog;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::day_of;

/// A checkpoint is left out up to this number of segments, if these have at most this many rows for
/// each row of the checkpoint.
const CHECKPOINT_SEGMENTS: usize = 16;
const CHECKPOINT_SHARE: u64 = 4;

/// Work that compaction has left to do, and when, if no batch is written until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpkeepSchedule {
    /// Seconds that rows are kept, 0 for ever.
    pub retention_seconds: u64,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Bytes of the log from which on it is compacted at once.
    pub log_bytes_due: u64,
    /// Ingest instant of the log's oldest block. The log is due when this block has the age that
    /// was asked for.
    pub log_since_ns: Option<i64>,
    /// Instant at which segments are to be merged or rows are no longer kept. Equals the current
    /// instant if rows were deleted, or while the data key turns.
    pub due_ns: Option<i64>,
}

impl UpkeepSchedule {
    /// Returns the work left from `now_ns` on if blocks may become `age_ns` old.
    pub(super) fn new(backlog: &Backlog, age_ns: i64, now_ns: i64) -> Self {
        let rest = DayRest::new(CompactionTrigger::LargeOrAged { age_ns }, now_ns);
        let merge = next_merge(&backlog.manifest, &rest);
        let expiry = next_expiry(&backlog.manifest, backlog.retention_seconds);
        let hours = next_of_hours(&backlog.manifest, now_ns);
        let deleted = (!backlog.manifest.tombstones.is_empty()).then_some(now_ns);
        let turning = backlog.is_turning.then_some(now_ns);
        Self {
            retention_seconds: backlog.retention_seconds,
            generation: backlog.manifest.generation,
            log_bytes_due: log_bytes_due(&backlog.manifest),
            log_since_ns: backlog.oldest_ingest_ns,
            due_ns: [merge, expiry, hours, deleted, turning].into_iter().flatten().min(),
        }
    }
}

/// Returns true if the log has many bytes, its oldest block is `age_ns` old, or it has deleted
/// rows.
pub(super) fn is_log_due(backlog: &Backlog, log_bytes: u64, age_ns: i64, now_ns: i64) -> bool {
    // A block that lies `age_ns` in the future was written under a wrong clock.
    let is_old = backlog.oldest_ingest_ns.is_some_and(|oldest_ns| {
        let age = now_ns.saturating_sub(oldest_ns);
        age >= age_ns || age < age_ns.saturating_neg()
    });
    let has_deleted = backlog.manifest.hidden_until() > backlog.manifest.compacted;
    is_old || has_deleted || log_bytes >= log_bytes_due(&backlog.manifest)
}

/// A round rewrites the checkpoint, so the log must be at least as large to be worth a round.
fn log_bytes_due(manifest: &Manifest) -> u64 {
    LOG_BYTES_DUE.max(manifest.checkpoint.bytes)
}

pub(super) fn expired_days(manifest: &Manifest, kept_from_ns: i64) -> HashSet<i64> {
    let expired =
        manifest.by_days().filter(|day| day.iter().all(|entry| entry.max_ns < kept_from_ns));
    expired.map(|day| day[0].day).collect()
}

/// Returns true if a checkpoint of `rows` rows is worth its bytes. If the segments have only a few
/// rows more, a process that opens the store reads the segments instead.
pub(super) fn is_checkpoint_due(segments: &[SegmentEntry], rows: u64) -> bool {
    let stored: u64 = segments.iter().map(|entry| entry.rows).sum();
    segments.len() > CHECKPOINT_SEGMENTS || stored > CHECKPOINT_SHARE * rows
}

/// Returns segments that are worth merging, and the effort to do so.
///
/// Segments of one day come first. Resting segments are merged if together they are a quarter
/// larger than the largest of them. A provisional segment is merged with all resting segments after
/// it. Growing segments are merged if together they are nearly 16 times as large as the
/// largest of them.
///
/// While a day grows, a merge makes a segment about 16 times as large. The base-16 logarithm
/// of (day / first segment) therefore tells how often a row is rewritten, and once more when the
/// day ends. Example: a day that grows from 1 MB to 15 MB rewrites no row until it ends, and a day
/// of 200 MB its rows once. The number of a day's segments grows with the same logarithm.
///
/// Segments of several days that may share a segment come last.
pub(super) fn mergeable(
    manifest: &Manifest,
    rest: &DayRest,
) -> Option<(Vec<SegmentEntry>, Effort)> {
    let of_a_day = manifest.by_days().find_map(|day| {
        let (resting, growing) = rest.split(day);
        let finished = worth_merging(resting, 20, |first| first.is_provisional);
        let finished = finished.map(|entries| (entries, Effort::High));
        finished.or_else(|| Some((grown(growing)?, Effort::Low)))
    });
    of_a_day.or_else(|| Some((sharing::joinable(manifest, rest)?, Effort::High)))
}

/// Returns the first instant at which there may be segments to merge. This is now if there are
/// some, else the instant at which the next segment of an unfinished day comes to rest.
fn next_merge(manifest: &Manifest, rest: &DayRest) -> Option<i64> {
    if mergeable(manifest, rest).is_some() {
        return Some(rest.now_ns);
    }
    let days = manifest.by_days();
    let unfinished = days.filter(|day| day.len() > 1 || day[0].is_provisional).flatten();
    let begins = unfinished.map(|entry| rest.begin_ns(entry.last_day(), entry.ingest_s));
    begins.filter(|begin_ns| *begin_ns > rest.now_ns).min()
}

/// Returns the first instant at which all rows of some day are no longer kept. The manifest does
/// not tell the newest row of each day in a shared segment. For such a segment the end of its first
/// day counts.
fn next_expiry(manifest: &Manifest, retention_seconds: u64) -> Option<i64> {
    if retention_seconds == 0 {
        return None;
    }
    let kept_ns = ns_of(retention_seconds);
    let newest_of = |day: &[SegmentEntry]| match day {
        [shared] if shared.is_shared() => Some(over_ns(day_of(shared.min_ns), 0).saturating_sub(1)),
        of_day => of_day.iter().map(|entry| entry.max_ns).max(),
    };
    let newest = manifest.by_days().filter_map(newest_of);
    newest.map(|newest_ns| newest_ns.saturating_add(kept_ns).saturating_add(1)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::SECOND_NS;
    use crate::storage::segment::DAY_NS;

    fn manifest(segments: &[(i64, i64)]) -> Manifest {
        let mut manifest = Manifest::default();
        for &(day, max_ns) in segments {
            manifest.insert(SegmentEntry { day, max_ns, bytes: 1, ..SegmentEntry::default() });
        }
        manifest
    }

    const AGE_NS: i64 = 10 * SECOND_NS;

    fn at(now_ns: i64) -> DayRest {
        DayRest::new(CompactionTrigger::LargeOrAged { age_ns: AGE_NS }, now_ns)
    }

    #[test]
    fn a_day_of_several_segments_is_merged_twice_the_age_after_its_end() {
        let segments = manifest(&[(0, 5), (1, DAY_NS), (1, DAY_NS + 5), (2, 2 * DAY_NS)]);
        assert_eq!(next_merge(&segments, &at(0)), Some(2 * DAY_NS + 2 * AGE_NS));
        // Now, until they are merged.
        let over_ns = 2 * DAY_NS + 2 * AGE_NS;
        assert_eq!(next_merge(&segments, &at(over_ns)), Some(over_ns));
        assert_eq!(next_merge(&manifest(&[(1, DAY_NS), (2, 2 * DAY_NS)]), &at(over_ns)), None);
    }

    /// Provisional segments of the first day. Each is given by its bytes and the second in which
    /// its rows arrived.
    fn came(segments: &[(u64, i64)]) -> Manifest {
        let entry = |&(bytes, ingest_s): &(u64, i64)| SegmentEntry {
            bytes,
            ingest_s,
            is_provisional: true,
            ..SegmentEntry::default()
        };
        Manifest { segments: segments.iter().map(entry).collect(), ..Manifest::default() }
    }

    #[test]
    fn a_day_that_is_long_over_grows_for_as_long_as_rows_of_it_come() {
        let start_s = 10 * DAY_NS / SECOND_NS;
        let segments = came(&[(9, start_s), (5, start_s + 15)]);
        for (after_s, is_due) in [(15, false), (20, false), (34, false), (35, true)] {
            let rest = at((start_s + after_s) * SECOND_NS);
            let effort = mergeable(&segments, &rest).map(|(of, effort)| (of.len(), effort));
            assert_eq!(effort, is_due.then_some((2, Effort::High)), "{after_s}");
        }
        // Without further writes the next look is when the first segments rest, and then when all
        // rest.
        let next_s = |after_s| {
            next_merge(&segments, &at((start_s + after_s) * SECOND_NS))
                .map(|next_ns| next_ns / SECOND_NS)
        };
        assert_eq!(next_s(15), Some(start_s + 20));
        assert_eq!(next_s(20), Some(start_s + 35));
        // While rows arrive they are merged with little effort, and only a few times.
        let sixteen = came(&[(9, start_s); 16]);
        let found =
            mergeable(&sixteen, &at(start_s * SECOND_NS)).map(|(of, effort)| (of.len(), effort));
        assert_eq!(found, Some((16, Effort::Low)));
        assert_eq!(at(start_s * SECOND_NS).effort(0, start_s), Effort::Low);
        // A compaction by hand finishes all segments.
        let found = mergeable(&segments, &DayRest::new(CompactionTrigger::Now, 0))
            .map(|(of, effort)| (of.len(), effort));
        assert_eq!(found, Some((2, Effort::High)));
    }

    #[test]
    fn what_trickles_in_keeps_no_day_from_being_finished() {
        let now_s = 10 * DAY_NS / SECOND_NS;
        let picked = |segments: &[(u64, i64)]| {
            let found = mergeable(&came(segments), &at(now_s * SECOND_NS));
            found.map(|(of, effort)| {
                (of.iter().map(|entry| entry.bytes).collect::<Vec<_>>(), effort)
            })
        };
        assert_eq!(picked(&[(160, now_s - 20), (10, now_s)]), Some((vec![160], Effort::High)));
        assert_eq!(picked(&[(159, now_s - 20), (10, now_s)]), None);
        // Rows that came before the rows of an earlier segment, under a clock that was behind,
        // wait.
        assert_eq!(picked(&[(160, now_s), (10, now_s - 20)]), None);
        assert_eq!(picked(&[(160, now_s), (10, now_s - 90)]), None);
    }

    #[test]
    fn a_clock_that_was_far_ahead_keeps_no_day_from_being_finished() {
        let now_s = 10 * DAY_NS / SECOND_NS;
        let is_due =
            |ingest_s| mergeable(&came(&[(1, ingest_s)]), &at(now_s * SECOND_NS)).is_some();
        assert!(!is_due(now_s + 20));
        assert!(is_due(now_s + 21));
        assert!(is_due(i64::MAX));
        assert!(is_due(i64::MIN));
    }

    #[test]
    fn a_day_ends_when_its_newest_row_is_no_longer_kept() {
        let segments = manifest(&[(1, DAY_NS + 7), (1, DAY_NS + 3), (2, 2 * DAY_NS)]);
        assert_eq!(next_expiry(&segments, 0), None);
        assert_eq!(next_expiry(&segments, 60), Some(DAY_NS + 8 + 60 * SECOND_NS));
        assert_eq!(next_expiry(&Manifest::default(), 60), None);
    }

    /// The first instant at which all days before `first_open_day` are over.
    fn over(first_open_day: i64) -> DayRest {
        at((first_open_day * DAY_NS).saturating_add(2 * AGE_NS))
    }

    fn picked(sizes: &[u64], first_open_day: i64) -> Option<Vec<u64>> {
        let mut manifest = Manifest::default();
        for bytes in sizes {
            manifest.insert(SegmentEntry { bytes: *bytes, ..SegmentEntry::default() });
        }
        let (entries, _) = mergeable(&manifest, &over(first_open_day))?;
        Some(entries.iter().map(|entry| entry.bytes).collect())
    }

    #[test]
    fn a_merge_makes_sixteen_times_its_largest_segment_at_least() {
        let of = |parts: &[(usize, u64)]| -> Vec<u64> {
            parts.iter().flat_map(|(count, bytes)| vec![*bytes; *count]).collect()
        };
        assert_eq!(picked(&[], 0), None);
        assert_eq!(picked(&[5], 0), None);
        assert_eq!(picked(&of(&[(15, 5)]), 0), None);
        assert_eq!(picked(&of(&[(16, 5)]), 0), Some(of(&[(16, 5)])));
        assert_eq!(picked(&of(&[(1, 50), (16, 3)]), 0), Some(of(&[(16, 3)])));
        assert_eq!(picked(&of(&[(15, 4), (4, 1)]), 0), Some(of(&[(15, 4), (4, 1)])));
        assert_eq!(picked(&[1, 100], 0), None);
    }

    #[test]
    fn a_checkpoint_is_worth_it_where_it_saves_most_rows_or_many_files() {
        let segments = |count, rows| vec![SegmentEntry { rows, ..SegmentEntry::default() }; count];
        assert!(!is_checkpoint_due(&[], 0));
        assert!(!is_checkpoint_due(&segments(2, 20), 10));
        assert!(is_checkpoint_due(&segments(2, 21), 10));
        assert!(is_checkpoint_due(&segments(17, 1), 10));
    }

    #[test]
    fn a_day_that_is_over_becomes_one_segment_but_for_what_comes_late() {
        assert_eq!(picked(&[5, 5], 1), Some(vec![5, 5]));
        assert_eq!(picked(&[16, 4, 4, 1], 1), Some(vec![16, 4, 4, 1]));
        assert_eq!(picked(&[100, 1], 1), None);
        assert_eq!(picked(&[100, 1, 1], 1), Some(vec![1, 1]));
    }

    #[test]
    fn what_is_provisional_is_written_again_when_its_day_is_over_and_no_sooner() {
        let mut manifest = Manifest::default();
        for (bytes, is_provisional) in [(100, false), (1, true), (2, false)] {
            manifest.insert(SegmentEntry { bytes, is_provisional, ..SegmentEntry::default() });
        }
        let last = |manifest: &Manifest| Some((manifest.segments[1..].to_vec(), Effort::High));
        assert_eq!(mergeable(&manifest, &over(0)), None);
        assert_eq!(mergeable(&manifest, &over(1)), last(&manifest));
        // A single provisional segment is written again too.
        manifest.segments.truncate(2);
        assert_eq!(mergeable(&manifest, &over(1)), last(&manifest));
        manifest.segments.remove(0);
        assert_eq!(next_merge(&manifest, &at(0)), Some(DAY_NS + 2 * AGE_NS));
        manifest.segments[0].is_provisional = false;
        assert_eq!((mergeable(&manifest, &over(1)), next_merge(&manifest, &at(0))), (None, None));
    }

    #[test]
    fn the_segments_of_a_day_stay_few_and_its_rows_are_rewritten_seldom() {
        for (first_open_day, segments_max, rewritten_max) in [(0, 31, 2), (1, 15, 15)] {
            let mut manifest = Manifest::default();
            let mut rewritten = 0;
            for _ in 0..1_000 {
                manifest.insert(SegmentEntry { bytes: 1, ..SegmentEntry::default() });
                while let Some((entries, _)) = mergeable(&manifest, &over(first_open_day)) {
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

    /// Rows of a past day arrive over several days: evenly, or most of them at first.
    #[test]
    fn a_day_that_is_filled_late_has_few_segments_and_is_rewritten_seldom() {
        let start_s = 10 * DAY_NS / SECOND_NS;
        for first in [1, 20_000] {
            let mut manifest = Manifest::default();
            let (mut total, mut rewritten, mut finished) = (0, 0, 0);
            for second in 0..2_000 {
                let bytes = if second == 0 { first } else { 1 };
                let ingest_s = start_s + second;
                let entry = came(&[(bytes, ingest_s)]).segments[0];
                manifest.insert(entry);
                total += bytes;
                while let Some((entries, effort)) = mergeable(&manifest, &at(ingest_s * SECOND_NS))
                {
                    let bytes = entries.iter().map(|entry| entry.bytes).sum();
                    rewritten += bytes;
                    finished += if effort == Effort::High { bytes } else { 0 };
                    let ingest_s = entries.iter().map(|entry| entry.ingest_s).max().unwrap();
                    let is_provisional = effort == Effort::Low;
                    let merged = SegmentEntry { bytes, is_provisional, ingest_s, ..entry };
                    manifest.replace(&entries, Some(merged));
                }
                assert!(manifest.segments.len() <= 36, "{:?}", manifest.segments);
            }
            let held: u64 = manifest.segments.iter().map(|entry| entry.bytes).sum();
            assert_eq!(held, total);
            assert!(rewritten <= 2 * total, "{rewritten} of {total}");
            assert!(finished <= 2 * total, "{finished} of {total}");
        }
    }
}
