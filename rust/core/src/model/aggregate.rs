//! Intervals, aggregations and the statistics that they need.

/// An aggregation window of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interval {
    /// `15s`
    FifteenSeconds,
    /// `30s`
    ThirtySeconds,
    /// `1m`
    OneMinute,
    /// `5m`
    FiveMinutes,
    /// `15m`
    FifteenMinutes,
    /// `1h`
    OneHour,
}

impl Interval {
    /// All of them, ascending.
    pub const ALL: [Self; 6] = [
        Self::FifteenSeconds,
        Self::ThirtySeconds,
        Self::OneMinute,
        Self::FiveMinutes,
        Self::FifteenMinutes,
        Self::OneHour,
    ];

    /// The name in a request and an answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FifteenSeconds => "15s",
            Self::ThirtySeconds => "30s",
            Self::OneMinute => "1m",
            Self::FiveMinutes => "5m",
            Self::FifteenMinutes => "15m",
            Self::OneHour => "1h",
        }
    }

    /// Length in nanoseconds.
    #[must_use]
    pub const fn ns(self) -> i64 {
        let seconds = match self {
            Self::FifteenSeconds => 15,
            Self::ThirtySeconds => 30,
            Self::OneMinute => 60,
            Self::FiveMinutes => 300,
            Self::FifteenMinutes => 900,
            Self::OneHour => 3_600,
        };
        seconds * 1_000_000_000
    }

    /// The interval of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.as_str() == name)
    }
}

/// Function of the samples of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Arithmetic mean.
    Mean,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Value of the greatest (time, write order).
    Last,
}

impl Aggregation {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Min, Self::Max, Self::Last];

    /// The name in a request and an answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Last => "last",
        }
    }

    /// The aggregation of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aggregation| aggregation.as_str() == name)
    }
}

/// A number that is kept of a fold, with its code in stored bytes (`docs/format.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Number of samples.
    Count = 0,
    /// Smallest.
    Min = 1,
    /// Largest.
    Max = 2,
    /// Sum, where a double can hold it.
    Sum = 3,
    /// Sample of the greatest (time, write order).
    Last = 4,
    /// Nanoseconds from the start of the window to that sample.
    LastOffset = 5,
    /// Sum of the samples times 2^-63, where a double cannot hold the sum.
    ScaledSum = 6,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Count,
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Last,
        Self::LastOffset,
        Self::ScaledSum,
    ];

    /// Statistics from which an aggregation is computed.
    #[must_use]
    pub const fn of(aggregation: Aggregation) -> &'static [Self] {
        match aggregation {
            Aggregation::Mean => &[Self::Count, Self::Sum, Self::ScaledSum],
            Aggregation::Min => &[Self::Count, Self::Min],
            Aggregation::Max => &[Self::Count, Self::Max],
            Aggregation::Last => &[Self::Count, Self::Last, Self::LastOffset],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for interval in Interval::ALL {
            assert_eq!(Interval::parse(interval.as_str()), Some(interval));
        }
        for aggregation in Aggregation::ALL {
            assert_eq!(Aggregation::parse(aggregation.as_str()), Some(aggregation));
        }
        assert_eq!(Interval::parse("2m"), None);
    }
}
