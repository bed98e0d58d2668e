//! Days with few rows share a segment. Which days do follows only from the manifest and the clock.
//!
//! A file takes at least one block of the disk, its seals take some hundred bytes, and short
//! columns pack badly. Example: a gateway that sends a row a day would take 4 KiB for each row. So
//! neighbouring days that are over share a segment as long as they are small together. The price is
//! that a late row makes its whole segment be written again, so the bound is low enough for that.

use super::rest::DayRest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::day_of;

/// Values and bytes that a segment of several days may have: bounds the rewrite for a late row.
/// Texts count by their bytes.
pub(super) const SHARED_VALUES_MAX: u64 = 1 << 16;
const SHARED_BYTES_MAX: u64 = 8 * SHARED_VALUES_MAX;

/// A file takes whole blocks of the disk.
const DISK_BLOCK_BYTES: u64 = 4_096;

/// Returns true if segments are small enough together that several days may share a segment.
fn is_little(entries: &[SegmentEntry]) -> bool {
    let sum = |of: fn(&SegmentEntry) -> u64| entries.iter().map(of).sum::<u64>();
    sum(|entry| entry.values) <= SHARED_VALUES_MAX && sum(|entry| entry.bytes) <= SHARED_BYTES_MAX
}

/// Returns true if a round that has rows of these segments' days writes the stored rows again with
/// its own. So small days do not spread over many files. A shared segment is always written again,
/// because no other segment may have rows of its days.
pub(super) fn is_written_again(of_days: &[SegmentEntry], rest: &DayRest) -> bool {
    let [first, ..] = of_days else { return false };
    first.is_shared() || rest.is_past(first.day) && is_little(of_days)
}

/// Returns neighbouring segments that are worth joining: finished, small, and together nearly four
/// times as large on disk as the largest of them. A row is therefore written again about once for
/// each time that its segment becomes four times as large.
pub(super) fn joinable(manifest: &Manifest, rest: &DayRest) -> Option<Vec<SegmentEntry>> {
    let finished: Vec<Option<&SegmentEntry>> =
        manifest.by_days().map(|of_days| finished(of_days, rest)).collect();
    (0..finished.len()).find_map(|start| {
        let mut run: Vec<SegmentEntry> = Vec::new();
        let (mut total, mut largest, mut worth) = (0, 0, 0);
        for entry in finished[start..].iter().map_while(|finished| *finished) {
            run.push(*entry);
            if !is_little(&run) {
                break;
            }
            let taken = entry.bytes.next_multiple_of(DISK_BLOCK_BYTES);
            total += taken;
            largest = taken.max(largest);
            if 16 * total >= 62 * largest {
                worth = run.len();
            }
        }
        run.truncate(worth);
        (worth > 0).then_some(run)
    })
}

/// Returns the only segment of days that are over, if no work is left for it.
fn finished<'e>(of_days: &'e [SegmentEntry], rest: &DayRest) -> Option<&'e SegmentEntry> {
    let [only] = of_days else { return None };
    let is_finished = !only.is_provisional && rest.is_past(only.last_day()) && rest.rests(only);
    is_finished.then_some(only)
}

/// Returns shared segments of which some days, but not all, are no longer kept.
pub(super) fn partly_expired(
    manifest: &Manifest,
    kept_from_ns: i64,
) -> impl Iterator<Item = &SegmentEntry> {
    let is_partly = move |entry: &&SegmentEntry| {
        entry.max_ns >= kept_from_ns && day_of(entry.min_ns) < day_of(kept_from_ns)
    };
    manifest.segments.iter().filter(|entry| entry.is_shared()).filter(is_partly)
}

#[cfg(test)]
mod tests {
    use super::super::rest::CompactionTrigger;
    use super::*;
    use crate::model::time::SECOND_NS;
    use crate::storage::segment::DAY_NS;

    const AGE_NS: i64 = 10 * SECOND_NS;

    /// The end of a day, when all rows until then are at rest.
    fn after(day: i64) -> DayRest {
        DayRest::new(
            CompactionTrigger::LargeOrAged { age_ns: AGE_NS },
            (day + 1) * DAY_NS + 2 * AGE_NS,
        )
    }

    fn entry(days: std::ops::RangeInclusive<i64>, bytes: u64, values: u64) -> SegmentEntry {
        SegmentEntry {
            day: *days.start(),
            min_ns: days.start() * DAY_NS,
            max_ns: days.end() * DAY_NS,
            bytes,
            values,
            ..SegmentEntry::default()
        }
    }

    fn manifest(segments: &[SegmentEntry]) -> Manifest {
        Manifest { segments: segments.to_vec(), ..Manifest::default() }
    }

    /// Returns the first and the last day of the segments that are joined.
    fn joined(segments: &[SegmentEntry], rest: &DayRest) -> Option<(i64, i64)> {
        let run = joinable(&manifest(segments), rest)?;
        Some((run[0].day, run[run.len() - 1].last_day()))
    }

    #[test]
    fn neighbours_are_joined_that_are_four_times_the_largest_and_little() {
        let days = |days: std::ops::Range<i64>| days.map(|day| entry(day..=day, 300, 4));
        let four: Vec<_> = days(0..4).collect();
        assert_eq!(joined(&four, &after(3)), Some((0, 3)));
        assert_eq!(joined(&four, &after(2)), None, "the last day is not over");
        assert_eq!(joined(&four[..3], &after(3)), None);
        let large = entry(4..=4, 300, SHARED_VALUES_MAX);
        let some: Vec<_> = days(2..4).chain([large]).chain(days(5..10)).collect();
        assert_eq!(joined(&some, &after(9)), Some((5, 9)));
        // Blocks of the disk count, not bytes.
        let unlike = [entry(0..=8, 16 << 10, 4), entry(9..=9, 1, 1), entry(10..=10, 1, 1)];
        assert_eq!(joined(&unlike, &after(10)), None);
        let provisional = four.iter().map(|entry| SegmentEntry { is_provisional: true, ..*entry });
        assert_eq!(joined(&provisional.collect::<Vec<_>>(), &after(3)), None);
        // Two segments of a day are merged first.
        let two: Vec<_> = days(0..3).chain(days(2..6)).collect();
        assert_eq!(joined(&two, &after(5)), None);
    }

    #[test]
    fn days_of_a_row_each_lie_in_few_segments_and_are_rewritten_seldom() {
        let (days, blocks_of) = (4_000, |bytes: u64| bytes.div_ceil(DISK_BLOCK_BYTES));
        let mut manifest = Manifest::default();
        let mut rewritten = 0;
        for day in 0..days {
            manifest.insert(entry(day..=day, 200, 8));
            while let Some(run) = joinable(&manifest, &after(day)) {
                let values = run.iter().map(|entry| entry.values).sum();
                let bytes = 100 + 10 * values;
                rewritten += blocks_of(bytes);
                let (first, last) = (run[0].day, run[run.len() - 1].last_day());
                manifest.replace(&run, Some(entry(first..=last, bytes, values)));
            }
            assert!(manifest.segments.len() <= 15, "{:?}", manifest.segments);
        }
        assert_eq!(manifest.segments.iter().map(|entry| entry.values).sum::<u64>(), 32_000);
        // Each day costs a block for each of the four times that its segment becomes four times as
        // large.
        assert!(rewritten <= 4 * days.cast_unsigned(), "{rewritten}");
    }

    #[test]
    fn a_round_writes_again_what_days_share_and_days_of_the_past_that_are_little() {
        let rest = after(9);
        assert!(is_written_again(&[entry(3..=3, 300, 4); 3], &rest));
        assert!(!is_written_again(&[entry(3..=3, 300, 1 + SHARED_VALUES_MAX / 2); 2], &rest));
        assert!(!is_written_again(&[entry(3..=3, SHARED_BYTES_MAX + 1, 4)], &rest));
        assert!(!is_written_again(&[entry(10..=10, 300, 4)], &rest), "today");
        assert!(is_written_again(&[entry(9..=10, 300, 4)], &rest), "whatever the clock says");
    }

    #[test]
    fn a_part_of_what_days_share_expires_once_a_day_is_over() {
        let segments = manifest(&[entry(1..=1, 1, 1), entry(2..=4, 1, 1), entry(5..=7, 1, 1)]);
        let first_days = |kept_from_ns: i64| -> Vec<i64> {
            partly_expired(&segments, kept_from_ns).map(|entry| entry.day).collect()
        };
        assert!(first_days(i64::MIN).is_empty());
        assert!(first_days(3 * DAY_NS - 1).is_empty());
        assert_eq!(first_days(3 * DAY_NS), [2]);
        assert_eq!(first_days(4 * DAY_NS), [2]);
        assert!(first_days(4 * DAY_NS + 1).is_empty(), "all of it has");
        assert_eq!(first_days(6 * DAY_NS), [5]);
    }
}
