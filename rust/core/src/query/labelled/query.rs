//! A read by labels, its bounds, and the series of its answer.

use std::time::Instant;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::labels::{Labels, METRIC, metric_of, value_of};
use super::matcher::{LabelMatcher, LabelTest};
use crate::model::batch::FieldType;
use crate::model::catalog::{Catalog, MeasurementIndex, Series};
use crate::model::names::{FieldId, SeriesId};

/// A read of all samples whose series meet every condition.
#[derive(Clone, Debug)]
pub struct LabelQuery {
    /// Conditions. The field is the label `__name__`.
    pub matchers: Vec<LabelMatcher>,
    /// Inclusive start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Exclusive end, in nanoseconds since 1970.
    pub end_ns: i64,
    /// If false, the answer has only the labels of the series that have a sample.
    pub keeps_samples: bool,
}

/// Bounds of a read by labels.
#[derive(Clone, Copy, Debug)]
pub struct LabelBounds {
    /// Maximum number of samples. Labels count as well: 16 bytes of
    /// [`label_bytes`](super::label_bytes) as one sample.
    pub samples_max: usize,
    /// Instant at which the read ends at the latest.
    pub until: Instant,
}

/// The bound that a read by labels passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelRefusal {
    /// More samples than [`LabelBounds::samples_max`].
    TooManySamples,
    /// Later than [`LabelBounds::until`].
    TooLate,
}

/// The samples of one series in one field.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledSeries {
    /// Labels, with the name of the metric.
    pub labels: Labels,
    /// Times of the samples in nanoseconds since 1970, strictly ascending.
    pub times_ns: Vec<i64>,
    /// Values of the samples. A boolean is 0 or 1.
    pub values: Vec<f64>,
}

/// Series and fields of one measurement that meet the conditions of a query.
pub(crate) struct MatchedSeries {
    pub(crate) measurement: MeasurementIndex,
    pub(crate) series: Vec<SeriesId>,
    /// Ascending.
    pub(crate) fields: Vec<FieldId>,
}

impl LabelQuery {
    /// Returns the series and fields that meet the conditions, by measurement. `candidates` has all
    /// series that can meet them, ascending. Without it, the cost is that of all series.
    ///
    /// # Errors
    /// Returns [`LabelRefusal::TooLate`] after `until`. The test of one value by an expression is not
    /// interrupted.
    pub(crate) fn matched(
        &self,
        catalog: &Catalog,
        candidates: Option<&[SeriesId]>,
        until: Instant,
    ) -> Result<Vec<MatchedSeries>, LabelRefusal> {
        let (of_metric, of_series): (Vec<&LabelMatcher>, Vec<&LabelMatcher>) =
            self.matchers.iter().partition(|matcher| matcher.label == METRIC);
        let mut matched: Vec<MatchedSeries> = Vec::new();
        let mut index_of: HashMap<MeasurementIndex, usize, RandomState> = HashMap::default();
        let check_time =
            || if Instant::now() > until { Err(LabelRefusal::TooLate) } else { Ok(()) };
        for (id, field) in catalog.all_fields() {
            check_time()?;
            let metric = metric_of(&field.name);
            if field.field_type == FieldType::Text
                || !of_metric.iter().all(|matcher| matcher.matches(&metric))
            {
                continue;
            }
            let measurement = field.measurement;
            let at = *index_of.entry(measurement).or_insert(matched.len());
            if at == matched.len() {
                matched.push(MatchedSeries { measurement, series: Vec::new(), fields: Vec::new() });
            }
            matched[at].fields.push(id);
        }
        let outcomes_max = OUTCOMES_MAX / of_series.len().max(1);
        let test = |matcher| Test::new(matcher, outcomes_max);
        let mut tests: Vec<Test<'_>> = of_series.into_iter().map(test).collect();
        let all = candidates.is_none().then(|| 0..catalog.series_end());
        let ids = candidates.unwrap_or_default().iter().copied().chain(all.into_iter().flatten());
        for (at, id) in ids.enumerate() {
            if at % SERIES_PER_LOOK == 0 {
                check_time()?;
            }
            let Some(series) = catalog.series(id) else { continue };
            let Some(at) = index_of.get(&series.measurement) else { continue };
            let mut passes = true;
            for test in &mut tests {
                passes = passes && test.passes(series, check_time)?;
            }
            if passes {
                matched[*at].series.push(id);
            }
        }
        matched.retain(|each| !each.series.is_empty());
        Ok(matched)
    }
}

/// A condition, and its outcome for the values that were tested. A fleet has far fewer values than
/// series, and an expression takes longer than a lookup.
struct Test<'c> {
    matcher: &'c LabelMatcher,
    /// Values without this beginning are not looked up.
    prefix: &'c str,
    outcomes: HashMap<&'c str, bool, RandomState>,
    outcomes_max: usize,
}

/// Series that are compared with texts between two looks at the clock.
const SERIES_PER_LOOK: usize = 1_024;

/// Values whose outcomes are kept for all conditions of a query.
const OUTCOMES_MAX: usize = 1 << 16;

impl<'c> Test<'c> {
    fn new(matcher: &'c LabelMatcher, outcomes_max: usize) -> Self {
        let prefix = matcher.expression_prefix();
        Self { matcher, prefix, outcomes: HashMap::default(), outcomes_max }
    }

    /// Returns true if a series meets the condition. Calls `check_time` before an expression.
    fn passes(
        &mut self,
        series: Series<'c>,
        check_time: impl Fn() -> Result<(), LabelRefusal>,
    ) -> Result<bool, LabelRefusal> {
        let value = value_of(series.name(), &self.matcher.label);
        if !self.matcher.is_expression() {
            return Ok(self.matcher.matches(value));
        }
        if !value.starts_with(self.prefix) {
            return Ok(matches!(self.matcher.test, LabelTest::NotMatching(_)));
        }
        if let Some(outcome) = self.outcomes.get(value) {
            return Ok(*outcome);
        }
        check_time()?;
        let outcome = self.matcher.matches(value);
        if self.outcomes.len() < self.outcomes_max {
            self.outcomes.insert(value, outcome);
        }
        Ok(outcome)
    }
}
