//! A read by labels, its bounds, and the series of its answer.

use std::time::Instant;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::labels::{Labels, METRIC, metric_of, value_of};
use super::matcher::LabelMatcher;
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
    /// Maximum number of samples. Labels count as well: 16 bytes as one sample.
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
    /// Returns the series and fields that meet the conditions, by measurement. The cost is that of
    /// the series of the measurements that have a matching field.
    pub(crate) fn matched(&self, catalog: &Catalog) -> Vec<MatchedSeries> {
        let (of_metric, of_series): (Vec<&LabelMatcher>, Vec<&LabelMatcher>) =
            self.matchers.iter().partition(|matcher| matcher.label == METRIC);
        let mut matched: Vec<MatchedSeries> = Vec::new();
        let mut index_of: HashMap<MeasurementIndex, usize, RandomState> = HashMap::default();
        for (id, field) in catalog.all_fields() {
            let metric = metric_of(&field.name);
            if field.field_type == FieldType::Text
                || !of_metric.iter().all(|matcher| matcher.matches(&metric))
            {
                continue;
            }
            let measurement = field.measurement;
            let index = *index_of.entry(measurement).or_insert(matched.len());
            if index == matched.len() {
                let (series, fields) = (Vec::new(), Vec::new());
                matched.push(MatchedSeries { measurement, series, fields });
            }
            matched[index].fields.push(id);
        }
        let mut tests: Vec<Test<'_>> = of_series.into_iter().map(Test::new).collect();
        for (id, series) in catalog.all_series() {
            if let Some(index) = index_of.get(&series.measurement)
                && tests.iter_mut().all(|test| test.passes(series))
            {
                matched[*index].series.push(id);
            }
        }
        matched.retain(|each| !each.series.is_empty());
        matched
    }
}

/// A condition, and its outcome for the values that were tested. A fleet has far fewer values than
/// series, and an expression takes longer than a lookup.
struct Test<'m> {
    matcher: &'m LabelMatcher,
    outcomes: HashMap<Box<str>, bool, RandomState>,
}

/// Values whose outcomes are kept for one condition.
const OUTCOMES_MAX: usize = 1 << 14;

impl<'m> Test<'m> {
    fn new(matcher: &'m LabelMatcher) -> Self {
        Self { matcher, outcomes: HashMap::default() }
    }

    fn passes(&mut self, series: Series<'_>) -> bool {
        let value = value_of(series.name(), &self.matcher.label);
        if !self.matcher.is_expression() {
            return self.matcher.matches(value);
        }
        if let Some(outcome) = self.outcomes.get(value) {
            return *outcome;
        }
        let outcome = self.matcher.matches(value);
        if self.outcomes.len() < OUTCOMES_MAX {
            self.outcomes.insert(value.into(), outcome);
        }
        outcome
    }
}
