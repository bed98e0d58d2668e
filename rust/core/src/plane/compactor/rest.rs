//! Segments at rest, and those of days that grow, by the manifest and the clock.

use crate::codec::Effort;
use crate::model::time::SECOND_NS;
use crate::storage::manifest::SegmentEntry;
use crate::storage::segment::DAY_NS;

/// Part of a segment's bytes that those behind it may have while it is finished.
const GROWING_SHARE: u64 = 16;

/// Condition on which the log is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No condition: it is compacted as it stands, however little it is.
    Now,
    /// It is large, or its oldest block is so old.
    LargeOrAged {
        /// Age in nanoseconds.
        age_ns: i64,
    },
}

/// Tells segments at rest, whose day gets no more rows, from those that still get company: a day
/// grows until it is over by the clock, and for as long as rows of it come.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    pub(super) now_ns: i64,
    /// Time that passes after the end of a day, and after the last of its rows came; none where
    /// all is to be finished.
    quiet_ns: Option<i64>,
}

impl Rest {
    pub(super) fn new(due: Due, now_ns: i64) -> Self {
        let quiet_ns = match due {
            Due::Now => None,
            Due::LargeOrAged { age_ns } => Some(age_ns.saturating_mul(2)),
        };
        Self { now_ns, quiet_ns }
    }

    /// Effort that rows of a day are written with that came until `ingest_s`: those of a day that
    /// grows are written again.
    pub(super) fn effort(&self, day: i64, ingest_s: i64) -> Effort {
        if self.is_due(day, ingest_s) { Effort::High } else { Effort::Low }
    }

    /// Tells if a segment is at rest.
    pub(super) fn rests(&self, entry: &SegmentEntry) -> bool {
        self.is_due(entry.last_day(), entry.ingest_s)
    }

    /// Tells if a day has ended, whatever still comes of it.
    pub(super) const fn is_past(&self, day: i64) -> bool {
        over_ns(day, 0) <= self.now_ns
    }

    fn is_due(&self, day: i64, ingest_s: i64) -> bool {
        self.begin_ns(day, ingest_s) <= self.now_ns
    }

    /// Tells if a day is over by the clock.
    pub(super) fn is_over(&self, day: i64) -> bool {
        self.quiet_ns.is_none_or(|quiet_ns| over_ns(day, quiet_ns) <= self.now_ns)
    }

    /// The instant from which on rows of a day rest that came until `ingest_s`.
    pub(super) fn begin_ns(&self, day: i64, ingest_s: i64) -> i64 {
        let Some(quiet_ns) = self.quiet_ns else { return i64::MIN };
        let day_over_ns = over_ns(day, quiet_ns);
        let quiet_from_ns = ingest_s.saturating_mul(SECOND_NS).saturating_add(quiet_ns);
        // Rows that came later than now by so much were noted by a clock that was wrong.
        let is_known = quiet_from_ns <= self.now_ns.saturating_add(quiet_ns.saturating_mul(2));
        if is_known { day_over_ns.max(quiet_from_ns) } else { day_over_ns }
    }

    /// The segments of a day that are finished, and those that grow: all, until all rest. But one at
    /// rest beside which all behind it are small is finished with those before it, so that what
    /// comes late for ever keeps no day from being finished.
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

/// The instant at which a day is over and has been for so long.
pub(super) const fn over_ns(day: i64, quiet_ns: i64) -> i64 {
    day.saturating_add(1).saturating_mul(DAY_NS).saturating_add(quiet_ns)
}
