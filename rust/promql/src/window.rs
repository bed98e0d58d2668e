//! Windows of samples before each step, series by series.

use crate::budget::SampleBudget;
use crate::column::{ABSENT, StepColumn, is_absent};
use crate::refusal::EvaluationResult;
use crate::selector::TimePlacement;
use crate::source::SampledSeries;
use crate::steps::Steps;

/// Samples of one series that lie in the range of one step. There is at least one sample.
pub(crate) struct Window<'s> {
    pub(crate) times_ms: &'s [i64],
    pub(crate) values: &'s [f64],
    /// Values before which the counter began anew within the window.
    pub(crate) resets: &'s [f64],
    /// First and last instant of the range, both inclusive.
    pub(crate) start_ms: i64,
    pub(crate) end_ms: i64,
    /// Instant of the step, which `offset` and `@` do not change.
    pub(crate) step_ms: i64,
    /// The scalar argument of the function at this step.
    pub(crate) parameter: f64,
}

/// A function of a window. `None` is no value.
pub(crate) type RangeFunction = fn(&Window<'_>) -> Option<f64>;

/// Samples that a range function reads, and the place of its windows.
pub(crate) struct Ranges {
    pub(crate) series: Vec<SampledSeries>,
    pub(crate) range_ms: i64,
    pub(crate) placed: TimePlacement,
}

/// Samples in windows between two looks at the clock.
const SAMPLES_PER_LOOK: usize = 1 << 12;

impl Ranges {
    /// Evaluates a function at each step of each series. `parameters` has a number for each step,
    /// or is empty.
    pub(crate) fn evaluated(
        self,
        steps: Steps,
        function: RangeFunction,
        parameters: &[f64],
        budget: &SampleBudget,
    ) -> EvaluationResult<Vec<StepColumn>> {
        budget.take(self.series.len().saturating_mul(steps.count))?;
        let mut columns = Vec::with_capacity(self.series.len());
        for series in self.series {
            let series = live(series);
            let resets = Resets::of(&series.values);
            let mut values = vec![ABSENT; steps.count];
            let (mut first, mut last, mut unlooked) = (0, 0, SAMPLES_PER_LOOK);
            for (step, value) in values.iter_mut().enumerate() {
                let step_ms = steps.time_ms(step);
                let end_ms = self.placed.end_ms(step_ms);
                let start_ms = end_ms.saturating_sub(self.range_ms);
                let times_ms = &series.times_ms;
                while times_ms.get(first).is_some_and(|time_ms| *time_ms < start_ms) {
                    first += 1;
                }
                last = last.max(first);
                while times_ms.get(last).is_some_and(|time_ms| *time_ms <= end_ms) {
                    last += 1;
                }
                unlooked += 1 + last - first;
                if unlooked > SAMPLES_PER_LOOK {
                    budget.check_time()?;
                    unlooked = 0;
                }
                if first == last {
                    continue;
                }
                let window = Window {
                    times_ms: &times_ms[first..last],
                    values: &series.values[first..last],
                    resets: resets.within(first, last),
                    start_ms,
                    end_ms,
                    step_ms,
                    parameter: parameters.get(step).copied().unwrap_or(f64::NAN),
                };
                *value = function(&window).unwrap_or(ABSENT);
            }
            columns.push(StepColumn { labels: series.labels, values });
        }
        Ok(columns)
    }
}

/// Removes the marks of the end of a series.
pub(crate) fn live(mut series: SampledSeries) -> SampledSeries {
    if series.values.iter().any(|value| is_absent(*value)) {
        let samples = series.times_ms.into_iter().zip(series.values);
        let kept = samples.filter(|(_, value)| !is_absent(*value));
        (series.times_ms, series.values) = kept.unzip();
    }
    series
}

/// Resets of a counter.
struct Resets {
    /// Indices of the samples that are below the sample before, ascending.
    indices: Vec<usize>,
    /// The values before.
    before: Vec<f64>,
}

impl Resets {
    fn of(values: &[f64]) -> Self {
        let pairs = values.windows(2).enumerate();
        let fallen = pairs.filter(|(_, pair)| pair[1] < pair[0]);
        let (indices, before) = fallen.map(|(at, pair)| (at + 1, pair[0])).unzip();
        Self { indices, before }
    }

    /// Returns the values before the resets among these samples, the first sample excluded.
    fn within(&self, first: usize, last: usize) -> &[f64] {
        let start = self.indices.partition_point(|index| *index <= first);
        let end = self.indices.partition_point(|index| *index < last);
        &self.before[start..end.max(start)]
    }
}
