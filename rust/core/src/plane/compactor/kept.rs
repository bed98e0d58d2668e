//! Segments of kept hours that are due to be merged, or are no longer kept.

use super::growth::grown;
use super::rest::ns_of;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::{DAY_NS, HOUR_NS};

/// A segment of hours is written again once so much of it is no longer kept.
const EXPIRED_NS: i64 = 30 * DAY_NS;

/// Returns a segment with so many hours no longer kept that it is removed or written again.
pub(super) fn expired_hours(manifest: &Manifest, from_ns: i64) -> Option<SegmentEntry> {
    let is_expired = |entry: &&SegmentEntry| due_ns(entry) <= from_ns;
    manifest.hours.segments.iter().find(is_expired).copied()
}

/// Returns the instant before which no hour is kept once a segment is due to expire.
fn due_ns(entry: &SegmentEntry) -> i64 {
    let is_over_ns = entry.max_ns.saturating_add(1);
    is_over_ns.min(entry.min_ns.saturating_add(EXPIRED_NS))
}

/// Returns the last segments of hours that are worth merging, by the rule of a day that grows.
/// Example: sixteen days become a segment, and sixteen such segments become a segment of 256 days.
pub(super) fn mergeable_hours(manifest: &Manifest) -> Option<Vec<SegmentEntry>> {
    grown(&manifest.hours.segments)
}

/// Returns the first instant at which kept hours are to be merged or removed.
pub(super) fn next_of_hours(manifest: &Manifest, now_ns: i64) -> Option<i64> {
    if mergeable_hours(manifest).is_some() {
        return Some(now_ns);
    }
    let kept_ns = ns_of(manifest.hours.seconds);
    let due = manifest.hours.segments.iter().map(due_ns);
    // The instant is rounded down to an hour before hours expire.
    due.map(|due_ns| due_ns.saturating_add(kept_ns).saturating_add(HOUR_NS)).min()
}
