//! The wall clock of the machine, and when this process believes it (O2).

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::error::{Error, Result};
use crate::model::time::SECOND_NS;

/// 2020-01-01T00:00:00Z in nanoseconds since 1970. A clock that shows an earlier time was never
/// set.
const YEAR_2020_NS: i64 = 1_577_836_800 * SECOND_NS;
/// Nanoseconds without a step after which the wall clock is believed, whatever time it shows.
const BELIEVED_AFTER_NS: i64 = 3_600 * SECOND_NS;
/// Largest step of the wall clock, in nanoseconds, that is ignored. A time service makes such
/// steps.
const STEP_NS: i64 = 60 * SECOND_NS;

/// The wall clock as this process saw it.
static WALL: Watch = Watch::new();

/// The instant of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// Nanoseconds since 1970.
    pub ns: i64,
    /// True if rows may expire by this instant, however far it is after the newest write.
    pub is_believed: bool,
}

impl CallTime {
    /// Reads the wall clock. The instant is believed if this process has seen the clock run for an
    /// hour without a step.
    ///
    /// Example: a clock that is set forward by a year is believed again an hour later.
    #[must_use]
    pub fn by_wall_clock() -> Self {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let ns = wall_ns();
        let elapsed = ORIGIN.get_or_init(Instant::now).elapsed();
        let elapsed_ns = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
        Self { ns, is_believed: WALL.look(ns, elapsed_ns) }
    }
}

/// An instant that the caller vouches for.
impl From<i64> for CallTime {
    fn from(ns: i64) -> Self {
        Self { ns, is_believed: true }
    }
}

/// Returns the wall clock in nanoseconds since 1970, or 0 if it shows an earlier time.
#[must_use]
pub fn wall_ns() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the wall clock for a write, in nanoseconds since 1970. No record of the write gets a
/// later time.
///
/// # Errors
/// Returns [`Error::Unavailable`] if the clock shows a time before 2020, which each record would
/// keep for good.
pub fn ingest_ns() -> Result<i64> {
    let ns = wall_ns();
    if ns < YEAR_2020_NS {
        let what = "the clock of this machine stands before 2020: set it".to_owned();
        return Err(Error::Unavailable { what });
    }
    Ok(ns)
}

/// The two clocks when they were last read.
struct Watch(Mutex<Option<ClockSample>>);

#[derive(Clone, Copy)]
struct ClockSample {
    /// The wall clock minus the monotonic clock.
    difference_ns: i64,
    /// Instant of the last step, by the monotonic clock.
    stepped_ns: i64,
}

impl Watch {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Records the readings of both clocks. Returns true if the wall clock has not stepped for an
    /// hour.
    fn look(&self, wall_ns: i64, monotonic_ns: i64) -> bool {
        let difference_ns = wall_ns.saturating_sub(monotonic_ns);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_step = |seen: &ClockSample| {
            difference_ns.abs_diff(seen.difference_ns) > STEP_NS.unsigned_abs()
        };
        let stepped_ns = match &*seen {
            Some(seen) if !is_step(seen) => seen.stepped_ns,
            _ => monotonic_ns,
        };
        *seen = Some(ClockSample { difference_ns, stepped_ns });
        monotonic_ns.saturating_sub(stepped_ns) >= BELIEVED_AFTER_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: i64 = 1_800_000_000 * SECOND_NS;
    const HOUR_NS: i64 = 3_600 * SECOND_NS;

    #[test]
    fn o2_a_clock_is_believed_once_it_has_gone_on_for_an_hour() {
        let watch = Watch::new();
        assert!(!watch.look(START_NS, 0));
        assert!(!watch.look(START_NS + HOUR_NS - 1, HOUR_NS - 1));
        assert!(watch.look(START_NS + HOUR_NS, HOUR_NS));
    }

    #[test]
    fn o2_a_step_either_way_begins_the_hour_anew() {
        for step_ns in [-365 * 24 * HOUR_NS, 1_024 * 7 * 24 * HOUR_NS] {
            let watch = Watch::new();
            watch.look(START_NS, 0);
            assert!(watch.look(START_NS + 2 * HOUR_NS, 2 * HOUR_NS));
            assert!(!watch.look(START_NS + step_ns + 2 * HOUR_NS, 2 * HOUR_NS));
            assert!(!watch.look(START_NS + step_ns + 3 * HOUR_NS - 1, 3 * HOUR_NS - 1));
            assert!(watch.look(START_NS + step_ns + 3 * HOUR_NS, 3 * HOUR_NS));
            assert!(!watch.look(START_NS + 3 * HOUR_NS, 3 * HOUR_NS), "and back");
        }
    }

    #[test]
    fn steps_of_a_time_service_change_nothing_even_if_they_add_up() {
        let watch = Watch::new();
        for hour in 0..100 {
            let step_ns = hour * 50 * SECOND_NS;
            assert_eq!(watch.look(START_NS + hour * HOUR_NS + step_ns, hour * HOUR_NS), hour > 0);
        }
    }
}
