//! Selectors: conditions on labels, and the newest sample before each step.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{AtModifier, Offset, VectorSelector};

use fleetcast_core::query::labelled::{LabelMatcher, LabelTest, METRIC};

use crate::budget::SampleBudget;
use crate::column::{ABSENT, StepColumn, is_absent};
use crate::refusal::EvaluationResult;
use crate::source::{SampledSeries, Source};
use crate::steps::Steps;

/// Age of a sample, in milliseconds, after which it is no longer the value of its series.
pub(crate) const LOOKBACK_MS: i64 = 300_000;

/// Place of a selector in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimePlacement {
    offset_ms: i64,
    /// The instant of `@`, in place of each step.
    at_ms: Option<i64>,
}

impl TimePlacement {
    /// Reads the modifiers of a selector. `start()` and `end()` name the ends of `whole_ms`.
    pub(crate) fn new(
        offset: Option<&Offset>,
        at: Option<&AtModifier>,
        whole_ms: &RangeInclusive<i64>,
    ) -> Self {
        let offset_ms = match offset {
            None => 0,
            Some(Offset::Pos(duration)) => milliseconds(*duration),
            Some(Offset::Neg(duration)) => -milliseconds(*duration),
        };
        let at_ms = at.map(|at| match at {
            AtModifier::Start => *whole_ms.start(),
            AtModifier::End => *whole_ms.end(),
            AtModifier::At(time) => since_1970_ms(*time),
        });
        Self { offset_ms, at_ms }
    }

    /// Returns the instant that a step refers to, the last instant of its range.
    pub(crate) fn end_ms(&self, step_ms: i64) -> i64 {
        self.at_ms.unwrap_or(step_ms).saturating_sub(self.offset_ms)
    }

    /// Returns the first and the last instant that `steps` refer to.
    pub(crate) fn reach(&self, steps: &Steps) -> (i64, i64) {
        (self.end_ms(steps.start_ms), self.end_ms(steps.end_ms()))
    }
}

/// Returns a duration in whole milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn since_1970_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => milliseconds(after),
        Err(before) => -milliseconds(before.duration()),
    }
}

/// Returns the conditions of a selector.
pub(crate) fn matchers(selector: &VectorSelector) -> Vec<LabelMatcher> {
    let name = selector.name.as_ref().map(|name| LabelMatcher {
        label: METRIC.to_owned(),
        test: LabelTest::Equal(name.clone()),
    });
    name.into_iter().chain(selector.matchers.matchers.iter().map(matcher)).collect()
}

/// Returns a condition of a selector.
pub(crate) fn matcher(matcher: &Matcher) -> LabelMatcher {
    let test = match &matcher.op {
        MatchOp::Equal => LabelTest::Equal(matcher.value.clone()),
        MatchOp::NotEqual => LabelTest::NotEqual(matcher.value.clone()),
        MatchOp::Re(expression) => LabelTest::Matching(expression.clone()),
        MatchOp::NotRe(expression) => LabelTest::NotMatching(expression.clone()),
    };
    LabelMatcher { label: matcher.name.clone(), test }
}

/// Samples of a selector, with enough before the first step.
pub(crate) fn selected(
    selector: &VectorSelector,
    placed: TimePlacement,
    before_ms: i64,
    steps: &Steps,
    (source, budget): (&dyn Source, &SampleBudget),
) -> EvaluationResult<Vec<SampledSeries>> {
    let (start_ms, end_ms) = placed.reach(steps);
    let start_ms = start_ms.saturating_sub(before_ms);
    let series = source.select(&matchers(selector), start_ms, end_ms, budget.of_read())?;
    for SampledSeries { labels, values, .. } in &series {
        budget.take_series(labels, values.len())?;
    }
    Ok(series)
}

/// Returns the newest sample before each step: its value, or its time in seconds.
pub(crate) fn newest(
    series: Vec<SampledSeries>,
    placed: TimePlacement,
    steps: &Steps,
    wants_time: bool,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<StepColumn>> {
    budget.take(series.len().saturating_mul(steps.count))?;
    let mut columns = Vec::with_capacity(series.len());
    for SampledSeries { labels, times_ms, values } in series {
        let mut at = 0;
        let newest = |step_ms: i64| {
            let end_ms = placed.end_ms(step_ms);
            while times_ms.get(at).is_some_and(|time_ms| *time_ms <= end_ms) {
                at += 1;
            }
            let Some(newest) = at.checked_sub(1) else { return ABSENT };
            let (time_ms, value) = (times_ms[newest], values[newest]);
            if is_absent(value) || time_ms < end_ms.saturating_sub(LOOKBACK_MS) {
                ABSENT
            } else if wants_time {
                seconds(time_ms)
            } else {
                value
            }
        };
        let column = StepColumn { labels, values: steps.times_ms().map(newest).collect() };
        if !column.is_empty() {
            columns.push(column);
        }
        budget.check_time()?;
    }
    Ok(columns)
}

/// Returns an instant in seconds.
#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 have 42 bits")]
pub(crate) fn seconds(time_ms: i64) -> f64 {
    time_ms as f64 / 1e3
}
