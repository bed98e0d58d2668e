//! When a plane will need [`Plane::compact`] again, so that nobody has to open it to ask.

use crate::model::error::Result;
use crate::model::limits::LOG_BYTES_DUE;
use crate::plane::{Plane, SECOND_NS};
use crate::storage::manifest::Manifest;
use crate::storage::segment::DAY_NS;

/// What [`Plane::compact`] has left to do, and when, if nothing is written until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// Seconds that rows are kept, 0 for ever.
    pub retention_seconds: u64,
    /// Bytes of the log from which on it is compacted at once.
    pub log_bytes_due: u64,
    /// Ingest instant of the log's oldest block: the log is due when that is old.
    pub log_since_ns: Option<i64>,
    /// When a day is over for merging, or its rows are no longer kept.
    pub due_ns: Option<i64>,
}

impl Plane {
    /// What is to be done from `now_ns` on, where blocks may become `age_ns` old.
    ///
    /// # Errors
    /// Those of following the log.
    pub fn upcoming(&self, age_ns: i64, now_ns: i64) -> Result<Upcoming> {
        self.follow()?;
        let state = self.state();
        let retention_seconds = state.retention_seconds;
        let merge = next_day_over(&state.manifest, age_ns, now_ns);
        let expiry = next_expiry(&state.manifest, retention_seconds);
        Ok(Upcoming {
            retention_seconds,
            log_bytes_due: LOG_BYTES_DUE.max(state.manifest.checkpoint.bytes),
            log_since_ns: state.log.iter().map(|block| block.ingest_ns).min(),
            due_ns: merge.into_iter().chain(expiry).min(),
        })
    }
}

/// The first instant after `now_ns` at which a day of several segments is over.
fn next_day_over(manifest: &Manifest, age_ns: i64, now_ns: i64) -> Option<i64> {
    let days = manifest.segments.chunk_by(|a, b| a.day == b.day).filter(|day| day.len() > 1);
    let over = days.map(|day| {
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
    use crate::storage::manifest::SegmentEntry;

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
}
