//! Segments of kept hours that are no longer kept.

use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::segment::DAY_NS;

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
