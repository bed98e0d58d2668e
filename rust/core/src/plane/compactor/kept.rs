//! Segments of kept hours that are worth merging, or no longer kept.

use std::collections::BTreeSet;

use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::DAY_NS;

/// Number of segments of hours that are merged into one. Example: sixteen days become a segment,
/// and sixteen such segments become one of 256 days.
const MERGED: usize = 16;

/// A segment of hours is written again once so much of it is no longer kept.
const EXPIRED_NS: i64 = 30 * DAY_NS;

/// Returns a segment with so many hours no longer kept that it is removed or written again.
pub(super) fn expired_hours(manifest: &Manifest, from_ns: i64) -> Option<SegmentEntry> {
    let is_expired = |entry: &&SegmentEntry| due_ns(entry) <= from_ns;
    manifest.hours.segments.iter().find(is_expired).copied()
}

/// Returns the instant before which no hour is kept once a segment is due to expire.
pub(super) fn due_ns(entry: &SegmentEntry) -> i64 {
    let is_over_ns = entry.max_ns.saturating_add(1);
    is_over_ns.min(entry.min_ns.saturating_add(EXPIRED_NS))
}

/// Returns the newest segments that are worth merging: [`MERGED`] at least, none of which has
/// outgrown the others by a power of [`MERGED`].
pub(super) fn mergeable_hours(manifest: &Manifest) -> Option<Vec<SegmentEntry>> {
    let segments = &manifest.hours.segments;
    let level = |entry: &SegmentEntry| entry.values.max(1).ilog(MERGED as u64);
    let levels = segments.iter().map(level).collect::<BTreeSet<_>>().into_iter();
    let mut runs = levels.map(|highest| {
        let is_within = |entry: &&SegmentEntry| level(entry) <= highest;
        let count = segments.iter().rev().take_while(is_within).count();
        &segments[segments.len() - count..]
    });
    runs.find(|run| run.len() >= MERGED).map(<[_]>::to_vec)
}
