//! The point budget of a series read: pure functions of integers.

use crate::model::aggregate::Interval;

/// Returns the number of windows of `interval_ns` that `[start_ns, end_ns)` touches. Both ends are
/// rounded toward the past.
///
/// Example: with windows of 15 s, the range from 10 s to 31 s touches three windows: 0 s, 15 s and
/// 30 s.
///
/// # Panics
/// Panics if the range is empty or the interval is not positive.
#[must_use]
pub(super) fn windows_touched(start_ns: i64, end_ns: i64, interval_ns: i64) -> u64 {
    assert!(start_ns < end_ns && interval_ns > 0, "a range and an interval were checked before");
    let first = start_ns.div_euclid(interval_ns);
    let last = (end_ns - 1).div_euclid(interval_ns);
    last.abs_diff(first) + 1
}

/// Returns true if the windows of `interval`, times the number of `entities`, fit `points_max`.
#[must_use]
pub(super) fn fits(
    start_ns: i64,
    end_ns: i64,
    interval: Interval,
    entities: u64,
    points_max: u64,
) -> bool {
    let windows = windows_touched(start_ns, end_ns, interval.ns());
    windows.checked_mul(entities).is_some_and(|points| points <= points_max)
}

/// Returns the smallest interval that fits, or `None` if no interval fits.
#[must_use]
pub(super) fn min_interval(
    start_ns: i64,
    end_ns: i64,
    entities: u64,
    points_max: u64,
) -> Option<Interval> {
    Interval::ALL
        .into_iter()
        .find(|interval| fits(start_ns, end_ns, *interval, entities, points_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;
    const THIRTY_DAYS_NS: i64 = 30 * 24 * HOUR_NS;

    #[test]
    fn h17_windows_are_those_touched_not_the_span_divided() {
        assert_eq!(windows_touched(0, THIRTY_DAYS_NS, HOUR_NS), 720);
        assert_eq!(windows_touched(1, THIRTY_DAYS_NS + 1, HOUR_NS), 721);
        assert_eq!(windows_touched(-1, 1, HOUR_NS), 2);
        assert_eq!(windows_touched(i64::MIN, i64::MAX, 15_000_000_000), 1_229_782_940);
    }

    #[test]
    fn h18_min_interval_is_the_smallest_that_fits_and_none_when_none_does() {
        assert_eq!(min_interval(0, THIRTY_DAYS_NS, 13, 10_000), Some(Interval::OneHour));
        assert_eq!(min_interval(0, THIRTY_DAYS_NS, 14, 10_000), None);
        assert_eq!(min_interval(0, HOUR_NS, 16, 10_000), Some(Interval::FifteenSeconds));
        assert_eq!(min_interval(0, 24 * HOUR_NS, 4, 10_000), Some(Interval::OneMinute));
    }
}
