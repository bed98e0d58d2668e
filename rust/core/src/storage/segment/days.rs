//! The day and the hour, in UTC, of an instant.

/// Nanoseconds of a day, the span of a segment.
pub const DAY_NS: i64 = 86_400_000_000_000;
/// Nanoseconds of an hour, the span of a row of statistics.
pub const HOUR_NS: i64 = 3_600_000_000_000;

/// Returns the day of an instant, counted from 1970-01-01. Example: an instant at 23:59 on
/// 1970-01-02 is on day 1.
#[must_use]
pub const fn day_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(DAY_NS)
}

/// Returns the first instant of the hour of `time_ns`, or the earliest instant that can be
/// represented.
#[must_use]
pub const fn hour_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(HOUR_NS).saturating_mul(HOUR_NS)
}
