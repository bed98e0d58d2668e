//! Limits of a series read and of its answer.

use crate::model::limits::{ANSWER_VALUES_MAX, HISTORY_DAYS_MAX, POINTS_MAX, RAW_SPAN_SECONDS_MAX};

/// Limits of one series read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesLimits {
    /// Points, i.e. rows summed over all entities, in one answer; at least 16.
    pub points_max: u64,
    /// Values in one answer, with times and nulls.
    pub values_max: u64,
    /// Days before now that a read may begin.
    pub horizon_days: u32,
    /// Seconds that a raw read may span.
    pub raw_span_seconds: u32,
    /// True if the reader may read measurements that the contract does not name.
    pub any_measurement: bool,
}

impl Default for SeriesLimits {
    fn default() -> Self {
        Self {
            points_max: POINTS_MAX,
            values_max: ANSWER_VALUES_MAX,
            horizon_days: HISTORY_DAYS_MAX,
            raw_span_seconds: RAW_SPAN_SECONDS_MAX,
            any_measurement: false,
        }
    }
}

impl SeriesLimits {
    /// Returns the bounds of the answer.
    #[must_use]
    pub fn bounds(&self) -> AnswerBounds {
        let count = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
        AnswerBounds { points_max: count(self.points_max), values_max: count(self.values_max) }
    }
}

/// Bounds of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerBounds {
    /// Maximum number of rows, summed over all entities.
    pub points_max: usize,
    /// Maximum number of values of all entities, with times and nulls. An entity has as many values
    /// as rows times one more than channels.
    ///
    /// Example: 100 rows with four channels are 500 values.
    pub values_max: usize,
}

impl AnswerBounds {
    /// No bounds, for callers inside the machine.
    pub const NONE: Self = Self { points_max: usize::MAX, values_max: usize::MAX };
}
