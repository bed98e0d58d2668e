//! Days and hours, UTC, that instants lie in.

/// Nanoseconds of a day, the span of a segment.
pub const DAY_NS: i64 = 86_400_000_000_000;
/// Nanoseconds of an hour, the span of a row of statistics.
pub const HOUR_NS: i64 = 3_600_000_000_000;

/// The day that an instant lies in, since 1970-01-01.
#[must_use]
pub const fn day_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(DAY_NS)
}

/// The beginning of the hour that an instant lies in, or the earliest instant there is.
#[must_use]
pub const fn hour_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(HOUR_NS).saturating_mul(HOUR_NS)
}
