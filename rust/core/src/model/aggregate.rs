//! Intervals, aggregations, and the statistics from which aggregations are computed.

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
    /// All intervals, ascending.
    pub const ALL: [Self; 6] = [
        Self::FifteenSeconds,
        Self::ThirtySeconds,
        Self::OneMinute,
        Self::FiveMinutes,
        Self::FifteenMinutes,
        Self::OneHour,
    ];

    /// Returns the name in requests and answers.
    ///
    /// Example: [`Self::FiveMinutes`] is `5m`.
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

    /// Returns the length in nanoseconds.
    ///
    /// Example: [`Self::FifteenSeconds`] has 15,000,000,000.
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

    /// Returns the interval with this name, or `None` if there is none.
    ///
    /// Example: `15m` is [`Self::FifteenMinutes`]; `2m` and `15M` are no intervals.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.as_str() == name)
    }
}

/// A function of the samples in a window.
///
/// Example: the samples 3, 1 and 5, in this order of time, have the mean 3, the minimum 1, the
/// maximum 5 and the last value 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Arithmetic mean.
    Mean,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Value with the greatest (time, write order).
    Last,
}

impl Aggregation {
    /// All aggregations, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Min, Self::Max, Self::Last];

    /// Returns the name in requests and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Last => "last",
        }
    }

    /// Returns the aggregation with this name, or `None` if there is none.
    ///
    /// Example: `mean` is [`Self::Mean`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aggregation| aggregation.as_str() == name)
    }
}

/// A number that is stored for a fold. The value of a variant is its code in stored bytes
/// (`docs/format.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Number of samples.
    Count = 0,
    /// Smallest sample.
    Min = 1,
    /// Largest sample.
    Max = 2,
    /// Sum of the samples, if a double can hold it.
    Sum = 3,
    /// Sample with the greatest (time, write order).
    Last = 4,
    /// Nanoseconds from the start of the window to the last sample.
    LastOffset = 5,
    /// Sum of the samples times 2^-63, if a double cannot hold the sum.
    ScaledSum = 6,
}

impl Statistic {
    /// All statistics.
    pub const ALL: [Self; 7] = [
        Self::Count,
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Last,
        Self::LastOffset,
        Self::ScaledSum,
    ];

    /// Returns the statistics from which an aggregation is computed.
    ///
    /// Example: the mean needs [`Self::Count`], [`Self::Sum`] and [`Self::ScaledSum`].
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
