//! Units of the times of lines.

use crate::model::time::SECOND_NS;

/// Bounds of `Auto`, and nanoseconds of the unit of smaller times: each bound is about 158 years
/// after 1970. Example: 1,769,860,800 is in seconds, and 1,769,860,800,000 is in milliseconds.
const AUTO_UNITS: [(u64, i64); 3] =
    [(5_000_000_000, SECOND_NS), (5_000_000_000_000, 1_000_000), (5_000_000_000_000_000, 1_000)];

/// Unit of the times of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `ns`
    Nanoseconds,
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Decided by the size of each time: seconds, milliseconds, microseconds or nanoseconds.
    Auto,
}

impl Precision {
    /// Returns the precision with this name. Example: `ms`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "ns" => Some(Self::Nanoseconds),
            "us" => Some(Self::Microseconds),
            "ms" => Some(Self::Milliseconds),
            "s" => Some(Self::Seconds),
            _ => None,
        }
    }

    /// Returns the nanoseconds of a unit. [`Self::Auto`] has the smallest unit.
    #[must_use]
    pub const fn unit_ns(self) -> i64 {
        match self {
            Self::Nanoseconds | Self::Auto => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => SECOND_NS,
            Self::Minutes => 60 * SECOND_NS,
            Self::Hours => 3_600 * SECOND_NS,
        }
    }

    /// Returns the instant of a time, in nanoseconds since 1970.
    #[inline]
    pub(crate) fn instant_ns(self, time: i64) -> i64 {
        let unit_ns = if self == Self::Auto { auto_unit_ns(time) } else { self.unit_ns() };
        time.saturating_mul(unit_ns)
    }
}

/// Returns the nanoseconds of the unit that a time is probably in.
fn auto_unit_ns(time: i64) -> i64 {
    let units = AUTO_UNITS.iter().find(|(below, _)| time.unsigned_abs() < *below);
    units.map_or(1, |(_, unit_ns)| *unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_time_tells_its_unit() {
        let seconds = 1_790_000_000;
        for unit_ns in [1, 1_000, 1_000_000, SECOND_NS] {
            let time = seconds * (SECOND_NS / unit_ns);
            assert_eq!(Precision::Auto.instant_ns(time), seconds * SECOND_NS);
            assert_eq!(Precision::Auto.instant_ns(-time), -seconds * SECOND_NS);
        }
        assert_eq!(Precision::Auto.instant_ns(i64::MIN), i64::MIN);
        assert_eq!(Precision::Hours.instant_ns(2), 7_200 * SECOND_NS);
        assert_eq!(Precision::Minutes.instant_ns(i64::MAX), i64::MAX);
    }
}
