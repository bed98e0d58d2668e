//! Tells segments at rest from segments of days that still grow, by the manifest and the clock.

use crate::codec::Effort;
use crate::model::time::SECOND_NS;
use crate::storage::manifest::SegmentEntry;
use crate::storage::segment::DAY_NS;

/// Segments after a resting segment may together have 1/16 of its bytes while it is finished.
/// Example: 60 KB of late rows do not keep a segment of 1 MB from being finished.
const GROWING_SHARE: u64 = 16;

/// Condition on which the log is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// No condition: the log is compacted as it stands, however small it is.
    Now,
    /// The log has many bytes, or its oldest block has the age `age_ns`.
    LargeOrAged {
        /// Age in nanoseconds.
        age_ns: i64,
    },
}

/// Tells segments at rest, whose days get no more rows, from segments of days that still grow. A
/// day grows until it is over by the clock, and as long as its rows arrive.
#[derive(Clone, Copy)]
pub(super) struct DayRest {
    pub(super) now_ns: i64,
    /// Time that must pass after the end of a day, and after its last rows arrived. `None` if all
    /// days are to be finished.
    quiet_ns: Option<i64>,
}

impl DayRest {
    pub(super) fn new(due: CompactionTrigger, now_ns: i64) -> Self {
        let quiet_ns = match due {
            CompactionTrigger::Now => None,
            CompactionTrigger::LargeOrAged { age_ns } => Some(age_ns.saturating_mul(2)),
        };
        Self { now_ns, quiet_ns }
    }

    /// Returns the effort to write rows of a day that arrived until `ingest_s`. Rows of a growing
    /// day get low effort because they are written again.
    pub(super) fn effort(&self, day: i64, ingest_s: i64) -> Effort {
        if self.is_due(day, ingest_s) { Effort::High } else { Effort::Low }
    }

    /// Returns true if a segment is at rest.
    pub(super) fn rests(&self, entry: &SegmentEntry) -> bool {
        self.is_due(entry.last_day(), entry.ingest_s)
    }

    /// Returns true if a day has ended, even if more of its rows arrive.
    pub(super) const fn is_past(&self, day: i64) -> bool {
        over_ns(day, 0) <= self.now_ns
    }

    fn is_due(&self, day: i64, ingest_s: i64) -> bool {
        self.begin_ns(day, ingest_s) <= self.now_ns
    }

    /// Returns the instant from which on rows of `day` that arrived until `ingest_s` are at rest.
    pub(super) fn begin_ns(&self, day: i64, ingest_s: i64) -> i64 {
        let Some(quiet_ns) = self.quiet_ns else { return i64::MIN };
        let day_over_ns = over_ns(day, quiet_ns);
        let quiet_from_ns = ingest_s.saturating_mul(SECOND_NS).saturating_add(quiet_ns);
        // An arrival that far in the future was noted under a wrong clock.
        let is_known = quiet_from_ns <= self.now_ns.saturating_add(quiet_ns.saturating_mul(2));
        if is_known { day_over_ns.max(quiet_from_ns) } else { day_over_ns }
    }

    /// Splits the segments of a day into finished and growing segments. All segments grow until all
    /// are at rest, with an exception. A resting segment is finished, with all before it, if the
    /// segments after it are small. So rows that keep arriving late do not keep a day from being
    /// finished.
    pub(super) fn split<'e>(
        &self,
        day: &'e [SegmentEntry],
    ) -> (&'e [SegmentEntry], &'e [SegmentEntry]) {
        let mut at = day.iter().take_while(|entry| self.rests(entry)).count();
        let mut bytes_after: u64 = day[at..].iter().map(|entry| entry.bytes).sum();
        while at > 0 && bytes_after * GROWING_SHARE > day[at - 1].bytes {
            bytes_after += day[at - 1].bytes;
            at -= 1;
        }
        day.split_at(at)
    }
}

/// Returns the instant at which a day has been over for `quiet_ns`.
pub(super) const fn over_ns(day: i64, quiet_ns: i64) -> i64 {
    day.saturating_add(1).saturating_mul(DAY_NS).saturating_add(quiet_ns)
}

/// Returns nanoseconds for a time that is set in seconds.
pub(super) fn ns_of(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(SECOND_NS)
}
