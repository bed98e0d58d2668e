//! Facts about the database that a process keeps beyond its sessions.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The timeline of the primary that does a statement, as eight digits.
macro_rules! timeline {
    () => {
        "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
    };
}
pub(crate) use timeline;

/// The newest timeline, and the lead of the database's clock.
#[derive(Default)]
pub(crate) struct ClusterFacts {
    /// The newest timeline of a primary in the upper half, the position of its host in the lower. A
    /// primary with an older timeline was replaced by a standby.
    newest: AtomicU64,
    /// Lead of the database's clock over this machine's, in microseconds.
    clock_lead_us: AtomicI64,
}

impl ClusterFacts {
    /// Notes the timeline of the primary at position `host` of the address; 0 is a standby's.
    pub(crate) fn note_timeline(&self, timeline: u32, host: usize) {
        let newest = u64::from(timeline) << 32 | u64::from(u32::try_from(host).unwrap_or(u32::MAX));
        if timeline > 0 {
            self.newest.fetch_max(newest, Ordering::AcqRel);
        }
    }

    /// Returns the newest timeline, or 0 if no primary was seen.
    pub(crate) fn timeline(&self) -> u32 {
        (self.newest.load(Ordering::Acquire) >> 32) as u32
    }

    /// Returns true if the primary of the newest timeline is the host at this position.
    pub(crate) fn is_primary(&self, host: usize) -> bool {
        let newest = self.newest.load(Ordering::Acquire);
        newest > 0 && usize::try_from(newest & u64::from(u32::MAX)) == Ok(host)
    }

    pub(crate) fn note_clock_lead(&self, clock_lead_us: i64) {
        self.clock_lead_us.store(clock_lead_us, Ordering::Relaxed);
    }

    /// Returns microseconds since 1970 by the database's clock, as exactly as a single question can
    /// tell.
    pub(crate) fn database_now_us(&self) -> i64 {
        now_us() + self.clock_lead_us.load(Ordering::Relaxed)
    }
}

/// Returns microseconds since 1970 by the clock of this machine.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
