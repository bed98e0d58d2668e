//! Evaluates an aggregation over the series of an expression.

use super::folds::OnePassFold;
use super::groups::groups;
use super::heap::{Heap, HeapItem};
use super::values::count_values;
use crate::budget::SampleBudget;
use crate::column::{ABSENT, StepColumn, is_absent};
use crate::functions::quantile::quantile;
use crate::labels::Choice;
use crate::refusal::{EvaluationResult, execution};

/// An aggregation operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregator {
    Fold(OnePassFold),
    Quantile,
    CountValues,
    TopK,
    BottomK,
}

/// The parameter of an aggregation.
pub(crate) enum AggregationParameter {
    None,
    /// A number for each step.
    Numbers(Vec<f64>),
    Text(String),
}

/// Numbers above which Prometheus does not take a number of series.
const K_MAX: f64 = 9.223_372_036_854_776e18;

impl Aggregator {
    /// Returns the operator of a name.
    pub(crate) fn read(name: &str) -> Option<Self> {
        Some(match name {
            "quantile" => Self::Quantile,
            "count_values" => Self::CountValues,
            "topk" => Self::TopK,
            "bottomk" => Self::BottomK,
            other => Self::Fold(OnePassFold::read(other)?),
        })
    }

    /// Evaluates the operator at each step.
    ///
    /// # Errors
    /// Returns a refusal for a parameter that the operator does not take.
    pub(crate) fn evaluated(
        self,
        columns: Vec<StepColumn>,
        choice: &Choice,
        parameter: &AggregationParameter,
        steps: usize,
        budget: &SampleBudget,
    ) -> EvaluationResult<Vec<StepColumn>> {
        budget.take(steps.saturating_mul(columns.len().min(1 << 10)))?;
        match (self, parameter) {
            (Self::Fold(fold), _) => Ok(each_group(&columns, choice, |members| {
                fold.folded(members.iter().map(|at| &columns[*at]), steps)
            })),
            (Self::Quantile, AggregationParameter::Numbers(fractions)) => {
                Ok(each_group(&columns, choice, |members| {
                    let at = |step| present(&columns, members, step).map(|(value, _)| value);
                    let quantile = |(step, fraction): (usize, &f64)| {
                        let mut values: Vec<f64> = at(step).collect();
                        if values.is_empty() { ABSENT } else { quantile(*fraction, &mut values) }
                    };
                    fractions.iter().enumerate().map(quantile).collect()
                }))
            }
            (Self::CountValues, AggregationParameter::Text(label)) => {
                count_values(&columns, label, choice, steps, budget)
            }
            (Self::TopK | Self::BottomK, AggregationParameter::Numbers(counts)) => {
                extremes(columns, choice, counts, self == Self::TopK)
            }
            _ => Err(execution("the aggregation has another kind of parameter")),
        }
    }
}

/// Makes one series of each group.
fn each_group(
    columns: &[StepColumn],
    choice: &Choice,
    values_of: impl Fn(&[usize]) -> Vec<f64>,
) -> Vec<StepColumn> {
    let groups = groups(columns, choice).into_iter();
    groups
        .map(|group| StepColumn { values: values_of(&group.members), labels: group.labels })
        .collect()
}

/// Returns the values of some series at a step.
fn present<'c>(
    columns: &'c [StepColumn],
    members: &'c [usize],
    step: usize,
) -> impl Iterator<Item = HeapItem> + 'c {
    let all = members.iter().map(move |at| (columns[*at].values[step], *at));
    all.filter(|(value, _)| !is_absent(*value))
}

/// Keeps the largest or smallest values of each group at each step. At a single step the series are
/// in order of their values.
fn extremes(
    mut columns: Vec<StepColumn>,
    choice: &Choice,
    counts: &[f64],
    is_largest: bool,
) -> EvaluationResult<Vec<StepColumn>> {
    let mut kept: Vec<Vec<f64>> = vec![vec![ABSENT; counts.len()]; columns.len()];
    let mut order: Vec<usize> = Vec::new();
    let groups = groups(&columns, choice);
    for (step, count) in counts.iter().enumerate() {
        if count.is_nan() || count.abs() >= K_MAX {
            return Err(execution(format!("Scalar value {count} overflows int64")));
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let Ok(count) = usize::try_from(*count as i64) else { continue };
        if count == 0 {
            continue;
        }
        for group in &groups {
            let mut heap = Heap::new(count, is_largest);
            present(&columns, &group.members, step).for_each(|item| heap.offer(item));
            for (value, at) in heap.into_sorted() {
                kept[at][step] = value;
                if counts.len() == 1 {
                    order.push(at);
                }
            }
        }
    }
    for (column, values) in columns.iter_mut().zip(kept) {
        column.values = values;
    }
    if counts.len() == 1 {
        let take = |at: usize| {
            let StepColumn { labels, values } = &mut columns[at];
            StepColumn { labels: std::mem::take(labels), values: std::mem::take(values) }
        };
        return Ok(order.into_iter().map(take).collect());
    }
    columns.retain(|column| !column.is_empty());
    Ok(columns)
}
