//! Work that compaction has left to do, and when: decided from the manifest and the clock alone.

use std::collections::HashSet;

use crate::codec::Effort;
use crate::model::limits::LOG_BYTES_DUE;
use crate::model::time::SECOND_NS;
use crate::plane::follower::Backlog;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{DAY_NS, day_of};

/// Segments, and rows for each of a checkpoint, up to which there is no checkpoint.
const CHECKPOINT_SEGMENTS: usize = 16;
const CHECKPOINT_SHARE: u64 = 4;

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

/// Work that compaction has left to do, and when, if nothing is written until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// Seconds that rows are kept, 0 for ever.
    pub retention_seconds: u64,
    /// Number of times that the manifest was replaced.
    pub generation: u64,
    /// Bytes of the log from which on it is compacted at once.
    pub log_bytes_due: u64,
    /// Ingest instant of the log's oldest block: the log is due when that is old.
    pub log_since_ns: Option<i64>,
    /// When a day is over for merging, or its rows are no longer kept, or rows were deleted.
    pub due_ns: Option<i64>,
}

impl Upcoming {
    /// The work left from `now_ns` on, where blocks may become `age_ns` old.
    pub(super) fn new(backlog: &Backlog, age_ns: i64, now_ns: i64) -> Self {
        let merge = next_day_over(&backlog.manifest, age_ns, now_ns);
        let expiry = next_expiry(&backlog.manifest, backlog.retention_seconds);
        let deleted = (!backlog.manifest.tombstones.is_empty()).then_some(now_ns);
        Self {
            retention_seconds: backlog.retention_seconds,
            generation: backlog.manifest.generation,
            log_bytes_due: log_bytes_due(&backlog.manifest),
            log_since_ns: backlog.oldest_ingest_ns,
            due_ns: merge.into_iter().chain(expiry).chain(deleted).min(),
        }
    }
}

/// Tells if a log of so many bytes is large, or its oldest block `age_ns` old, or has deleted rows.
pub(super) fn is_log_due(backlog: &Backlog, log_bytes: u64, age_ns: i64, now_ns: i64) -> bool {
    let age_of = |oldest_ns: i64| now_ns.saturating_sub(oldest_ns);
    let is_old = backlog.oldest_ingest_ns.is_some_and(|oldest_ns| age_of(oldest_ns) >= age_ns);
    let has_deleted = backlog.manifest.hidden_until() > backlog.manifest.compacted;
    is_old || has_deleted || log_bytes >= log_bytes_due(&backlog.manifest)
}

/// A round rewrites the checkpoint, so the log has to be as large to be worth one.
fn log_bytes_due(manifest: &Manifest) -> u64 {
    LOG_BYTES_DUE.max(manifest.checkpoint.bytes)
}

pub(super) fn expired_days(manifest: &Manifest, kept_from_ns: i64) -> HashSet<i64> {
    let days = manifest.segments.chunk_by(|a, b| a.day == b.day);
    let expired = days.filter(|day| day.iter().all(|entry| entry.max_ns < kept_from_ns));
    expired.map(|day| day[0].day).collect()
}

/// The day from which on more rows are expected: until then days are merged whole.
pub(super) fn first_open_day(due: Due, now_ns: i64) -> i64 {
    match due {
        Due::Now => i64::MAX,
        Due::LargeOrAged { age_ns } => day_of(now_ns.saturating_sub(age_ns.saturating_mul(2))),
    }
}

/// Effort that segments of a day are written with: rows of an open one are written again.
pub(super) fn effort_of(day: i64, open_from: i64) -> Effort {
    if day < open_from { Effort::High } else { Effort::Low }
}

/// Tells if a checkpoint of so many rows is worth its bytes: where the segments have few rows more,
/// whoever opens the store reads those.
pub(super) fn is_checkpoint_due(segments: &[SegmentEntry], rows: u64) -> bool {
    let stored: u64 = segments.iter().map(|entry| entry.rows).sum();
    segments.len() > CHECKPOINT_SEGMENTS || stored > CHECKPOINT_SHARE * rows
}

/// The last segments of a day that are worth merging: as many as together are nearly four times as
/// large as the largest of them, or a quarter larger once the day is over, and then any that is
/// provisional with those behind it. So while a day grows a row is rewritten about as often at most
/// as its day can become four times as large, then once, and the number of a day's segments grows
/// with the logarithm of its size.
pub(super) fn mergeable(manifest: &Manifest, open_from: i64) -> Option<Vec<SegmentEntry>> {
    manifest.segments.chunk_by(|a, b| a.day == b.day).find_map(|day| {
        let is_open = day[0].day >= open_from;
        let suffixes = (0..day.len()).map(|start| &day[start..]);
        let mut worth = suffixes.filter(|suffix| {
            let largest = suffix.iter().map(|entry| entry.bytes).max().unwrap_or(0);
            let bytes: u64 = suffix.iter().map(|entry| entry.bytes).sum();
            // Nearly: a merge saves a little, and equals must not miss each other for that.
            let sixteenths = if is_open { 62 } else { 20 };
            let is_due = !is_open && suffix[0].is_provisional;
            is_due || suffix.len() > 1 && 16 * bytes >= sixteenths * largest
        });
        worth.next().map(<[_]>::to_vec)
    })
}

/// The first instant after `now_ns` at which a day is over whose segments are not final.
fn next_day_over(manifest: &Manifest, age_ns: i64, now_ns: i64) -> Option<i64> {
    let days = manifest.segments.chunk_by(|a, b| a.day == b.day);
    let unfinished = days.filter(|day| day.len() > 1 || day[0].is_provisional);
    let over = unfinished.map(|day| {
        let end_ns = (day[0].day + 1).saturating_mul(DAY_NS);
        end_ns.saturating_add(age_ns.saturating_mul(2))
    });
    over.filter(|&over_ns| over_ns > now_ns).min()
}

/// The first instant at which a whole day's rows are no longer kept.
fn next_expiry(manifest: &Manifest, retention_seconds: u64) -> Option<i64> {
    if retention_seconds == 0 {
        return None;
    }
    let kept_ns = i64::try_from(retention_seconds).unwrap_or(i64::MAX).saturating_mul(SECOND_NS);
    let days = manifest.segments.chunk_by(|a, b| a.day == b.day);
    let newest = days.filter_map(|day| day.iter().map(|entry| entry.max_ns).max());
    newest.map(|newest_ns| newest_ns.saturating_add(kept_ns).saturating_add(1)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(segments: &[(i64, i64)]) -> Manifest {
        let mut manifest = Manifest::default();
        for &(day, max_ns) in segments {
            manifest.insert(SegmentEntry { day, max_ns, ..SegmentEntry::default() });
        }
        manifest
    }

    #[test]
    fn a_day_of_several_segments_is_merged_twice_the_age_after_its_end() {
        let segments = manifest(&[(0, 5), (1, DAY_NS), (1, DAY_NS + 5), (2, 2 * DAY_NS)]);
        assert_eq!(next_day_over(&segments, 10, 0), Some(2 * DAY_NS + 20));
        assert_eq!(next_day_over(&segments, 10, 2 * DAY_NS + 20), None);
    }

    #[test]
    fn a_day_ends_when_its_newest_row_is_no_longer_kept() {
        let segments = manifest(&[(1, DAY_NS + 7), (1, DAY_NS + 3), (2, 2 * DAY_NS)]);
        assert_eq!(next_expiry(&segments, 0), None);
        assert_eq!(next_expiry(&segments, 60), Some(DAY_NS + 8 + 60 * SECOND_NS));
        assert_eq!(next_expiry(&Manifest::default(), 60), None);
    }

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
        assert_eq!(mergeable(&manifest, 0), None);
        assert_eq!(mergeable(&manifest, 1), Some(manifest.segments[1..].to_vec()));
        // Alone, too.
        manifest.segments.truncate(2);
        assert_eq!(mergeable(&manifest, 1), Some(manifest.segments[1..].to_vec()));
        manifest.segments.remove(0);
        assert_eq!(next_day_over(&manifest, 10, 0), Some(DAY_NS + 20));
        manifest.segments[0].is_provisional = false;
        assert_eq!((mergeable(&manifest, 1), next_day_over(&manifest, 10, 0)), (None, None));
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
