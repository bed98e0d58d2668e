//! Values of an expression at the steps of a question, series by series.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fleetcast_core::query::labelled::Labels;
use foldhash::fast::RandomState;

use crate::labels::without_metric;
use crate::refusal::{EvaluationResult, execution};

/// Stands for no value at a step. It is the NaN with which Prometheus marks the end of a series, so
/// no sample has it as its value.
pub(crate) const ABSENT: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Returns true if there is no value.
pub(crate) const fn is_absent(value: f64) -> bool {
    value.to_bits() == ABSENT.to_bits()
}

/// The values of one series: a value or [`ABSENT`] at each step.
#[derive(Clone, Debug)]
pub(crate) struct StepColumn {
    pub(crate) labels: Labels,
    pub(crate) values: Vec<f64>,
}

/// The value of an expression. Every list of numbers has an entry for each step.
#[derive(Clone, Debug)]
pub(crate) enum ExpressionValue {
    Scalar(Vec<f64>),
    /// Series with a value at one step at least. No labels occur twice.
    Vector(Vec<StepColumn>),
    Text(String),
}

impl StepColumn {
    /// Replaces each value that is there. `change` may return [`ABSENT`].
    pub(crate) fn map(&mut self, mut change: impl FnMut(usize, f64) -> f64) {
        for (step, value) in self.values.iter_mut().enumerate() {
            if !is_absent(*value) {
                *value = change(step, *value);
            }
        }
    }

    /// Returns true if there is no value at any step.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.iter().all(|value| is_absent(*value))
    }
}

/// Joins columns with the same labels, and removes columns without a value.
///
/// # Errors
/// Returns `message` if two columns with the same labels have a value at the same step.
pub(crate) fn joined(columns: Vec<StepColumn>, message: &str) -> EvaluationResult<Vec<StepColumn>> {
    let mut kept: Vec<StepColumn> = Vec::with_capacity(columns.len());
    let mut index_of: HashMap<Labels, usize, RandomState> = HashMap::default();
    for column in columns {
        if column.is_empty() {
            continue;
        }
        match index_of.entry(column.labels.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(kept.len());
                kept.push(column);
            }
            Entry::Occupied(entry) => {
                for (value, new) in kept[*entry.get()].values.iter_mut().zip(column.values) {
                    if is_absent(*value) {
                        *value = new;
                    } else if !is_absent(new) {
                        return Err(execution(message));
                    }
                }
            }
        }
    }
    Ok(kept)
}

/// Message for a vector in which labels occur twice.
pub(crate) const SAME_LABELS: &str = "vector cannot contain metrics with the same labelset";

/// Changes each value. The results do not have the name of the metric.
pub(crate) fn changed(
    columns: Vec<StepColumn>,
    change: impl Fn(usize, f64) -> f64,
) -> EvaluationResult<ExpressionValue> {
    let change = |mut column: StepColumn| {
        column.map(&change);
        StepColumn { labels: without_metric(column.labels), values: column.values }
    };
    joined(columns.into_iter().map(change).collect(), SAME_LABELS).map(ExpressionValue::Vector)
}
