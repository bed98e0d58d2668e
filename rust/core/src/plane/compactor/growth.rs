//! Runs of segments that are worth merging.

use crate::storage::manifest::SegmentEntry;

/// Growing segments are merged into a segment so many times as large as the largest of them.
const GROWTH: u64 = 16;

/// Returns the longest run of last segments that together are nearly [`GROWTH`] times as large as
/// the largest of them. "Nearly", because a merge saves a few bytes, and equal segments must still
/// be merged.
pub(super) fn grown(entries: &[SegmentEntry]) -> Option<Vec<SegmentEntry>> {
    worth_merging(entries, 16 * GROWTH - 2, |_| false)
}

/// Returns the longest run of last segments that is worth merging. A run is worth merging if it has
/// `sixteenths` / 16 times the bytes of its largest segment, or if its first segment `is_due`.
pub(super) fn worth_merging(
    entries: &[SegmentEntry],
    sixteenths: u64,
    is_due: impl Fn(&SegmentEntry) -> bool,
) -> Option<Vec<SegmentEntry>> {
    let mut suffixes = (0..entries.len()).map(|start| &entries[start..]);
    let worth = suffixes.find(|suffix| {
        let largest = suffix.iter().map(|entry| entry.bytes).max().unwrap_or(0);
        let bytes: u64 = suffix.iter().map(|entry| entry.bytes).sum();
        is_due(&suffix[0]) || suffix.len() > 1 && 16 * bytes >= sixteenths * largest
    });
    worth.map(<[_]>::to_vec)
}
