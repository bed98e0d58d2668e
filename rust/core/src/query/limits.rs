//! Limits of a series read and of its answer.

use crate::model::limits::{ANSWER_VALUES_MAX, HISTORY_DAYS_MAX, POINTS_MAX, RAW_SPAN_SECONDS_MAX};

/// Limits of one series read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesLimits {
    /// Points, i.e. rows over all entities, in one answer; at least 16.
    pub points_max: u64,
    /// Values in one answer, times and nulls included.
    pub values_max: u64,
    /// Days that a read reaches back.
    pub horizon_days: u32,
    /// Span of a raw read, seconds.
    pub raw_span_seconds: u32,
    /// True for a reader who may ask for measurements that the contract does not name.
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
    /// Bounds of its answer.
    #[must_use]
    pub fn bounds(&self) -> AnswerBounds {
        let count = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
        AnswerBounds { points_max: count(self.points_max), values_max: count(self.values_max) }
    }
}

/// Bounds of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerBounds {
    /// Rows of all entities.
    pub points_max: usize,
    /// Values of all entities, times and nulls included: the rows of an entity times one more
    /// than its channels.
    pub values_max: usize,
}

impl AnswerBounds {
    /// No bounds, for callers inside the machine.
    pub const NONE: Self = Self { points_max: usize::MAX, values_max: usize::MAX };
}
