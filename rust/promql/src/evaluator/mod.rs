//! Evaluates an expression at the steps of a question, all steps of a series at once.

pub(crate) mod calls;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use promql_parser::label::Labels;
use promql_parser::parser::{
    AggregateExpr, BinaryExpr, Expr, LabelModifier, SubqueryExpr, VectorMatchCardinality,
    VectorSelector,
};

use crate::aggregation::{AggregationParameter, Aggregator};
use crate::budget::SampleBudget;
use crate::column::{ExpressionValue, StepColumn, changed, is_absent};
use crate::labels::Choice;
use crate::operators::matching::{Cardinality, VectorMatch};
use crate::operators::numbers::Operator;
use crate::operators::sets::SetOperator;
use crate::refusal::{EvaluationResult, bad_data, unknown};
use crate::selector::{LOOKBACK_MS, TimePlacement, milliseconds, newest, selected};
use crate::source::{SampledSeries, Source};
use crate::steps::Steps;
use crate::window::{Ranges, live};

/// Distance of the steps of a subquery that names none: Prometheus' default evaluation interval.
const SUBQUERY_STEP_MS: i64 = 60_000;

/// Evaluates one question.
pub(crate) struct Evaluator<'q> {
    pub(crate) source: &'q dyn Source,
    pub(crate) budget: &'q SampleBudget,
    /// Start and end of the whole question, which `start()` and `end()` name.
    pub(crate) whole_ms: RangeInclusive<i64>,
}

impl Evaluator<'_> {
    /// Evaluates an expression that is not a range of samples.
    pub(crate) fn evaluated(
        &self,
        expression: &Expr,
        steps: Steps,
    ) -> EvaluationResult<ExpressionValue> {
        self.budget.check_time()?;
        match expression {
            Expr::Paren(inner) => self.evaluated(&inner.expr, steps),
            Expr::NumberLiteral(number) => self.scalar(steps, |_| number.val),
            Expr::StringLiteral(text) => Ok(ExpressionValue::Text(text.val.clone())),
            Expr::Unary(inner) => self.negated(&inner.expr, steps),
            Expr::VectorSelector(selector) => {
                self.selected(selector, steps, false).map(ExpressionValue::Vector)
            }
            Expr::Aggregate(aggregate) => {
                self.aggregated(aggregate, steps).map(ExpressionValue::Vector)
            }
            Expr::Binary(binary) => self.binary(binary, steps),
            Expr::Call(call) => self.called(call, steps),
            Expr::MatrixSelector(_) | Expr::Subquery(_) | Expr::Extension(_) => {
                Err(bad_data("a range of samples is not a value at a step"))
            }
        }
    }

    /// Returns the samples of a range at one instant.
    pub(crate) fn samples(
        &self,
        expression: &Expr,
        time_ms: i64,
    ) -> EvaluationResult<Vec<SampledSeries>> {
        let ranges = self.ranges(expression, Steps::at(time_ms))?;
        let end_ms = ranges.placed.end_ms(time_ms);
        let range_ms = end_ms.saturating_sub(ranges.range_ms)..=end_ms;
        let within = |series: SampledSeries| {
            let mut series = live(series);
            let samples = series.times_ms.into_iter().zip(series.values);
            let kept = samples.filter(|(time_ms, _)| range_ms.contains(time_ms));
            (series.times_ms, series.values) = kept.unzip();
            series
        };
        let series = ranges.series.into_iter().map(within);
        Ok(series.filter(|series| !series.times_ms.is_empty()).collect())
    }

    fn scalar(
        &self,
        steps: Steps,
        value: impl Fn(i64) -> f64,
    ) -> EvaluationResult<ExpressionValue> {
        self.budget.take(steps.count)?;
        Ok(ExpressionValue::Scalar(steps.times_ms().map(value).collect()))
    }

    fn vector(&self, expression: &Expr, steps: Steps) -> EvaluationResult<Vec<StepColumn>> {
        match self.evaluated(expression, steps)? {
            ExpressionValue::Vector(columns) => Ok(columns),
            _ => Err(bad_data("expected type instant vector")),
        }
    }

    fn numbers(&self, expression: &Expr, steps: Steps) -> EvaluationResult<Vec<f64>> {
        match self.evaluated(expression, steps)? {
            ExpressionValue::Scalar(numbers) => Ok(numbers),
            _ => Err(bad_data("expected type scalar")),
        }
    }

    fn selected(
        &self,
        selector: &VectorSelector,
        steps: Steps,
        wants_time: bool,
    ) -> EvaluationResult<Vec<StepColumn>> {
        let placed =
            TimePlacement::new(selector.offset.as_ref(), selector.at.as_ref(), &self.whole_ms);
        let reading = (self.source, self.budget);
        let series = selected(selector, placed, LOOKBACK_MS, &steps, reading)?;
        newest(series, placed, &steps, wants_time, self.budget)
    }

    fn negated(&self, expression: &Expr, steps: Steps) -> EvaluationResult<ExpressionValue> {
        match self.evaluated(expression, steps)? {
            ExpressionValue::Scalar(numbers) => {
                Ok(ExpressionValue::Scalar(numbers.into_iter().map(|number| -number).collect()))
            }
            ExpressionValue::Vector(columns) => changed(columns, |_, value| -value),
            text @ ExpressionValue::Text(_) => Ok(text),
        }
    }

    fn aggregated(
        &self,
        aggregate: &AggregateExpr,
        steps: Steps,
    ) -> EvaluationResult<Vec<StepColumn>> {
        let name = aggregate.op.to_string();
        let aggregation = Aggregator::read(&name).ok_or_else(|| unknown(&name))?;
        let choice = choice(aggregate.modifier.as_ref(), Choice::Only);
        let parameter = match &aggregate.param {
            None => AggregationParameter::None,
            Some(parameter) => match self.evaluated(parameter, steps)? {
                ExpressionValue::Scalar(numbers) => AggregationParameter::Numbers(numbers),
                ExpressionValue::Text(text) => AggregationParameter::Text(text),
                ExpressionValue::Vector(_) => {
                    return Err(bad_data("expected type scalar in aggregation"));
                }
            },
        };
        let columns = self.vector(&aggregate.expr, steps)?;
        aggregation.evaluated(columns, &choice, &parameter, steps.count, self.budget)
    }

    fn binary(&self, binary: &BinaryExpr, steps: Steps) -> EvaluationResult<ExpressionValue> {
        let (left, right) =
            (self.evaluated(&binary.lhs, steps)?, self.evaluated(&binary.rhs, steps)?);
        let text = binary.op.to_string();
        let matching = binary.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
        let choice = choice(matching, Choice::AllBut);
        if let Some(operator) = SetOperator::read(&text) {
            let (ExpressionValue::Vector(left), ExpressionValue::Vector(right)) = (left, right)
            else {
                return Err(bad_data(format!(
                    "set operator {text:?} not allowed in binary scalar expression"
                )));
            };
            return operator
                .evaluated(left, right, &choice, steps.count)
                .map(ExpressionValue::Vector);
        }
        let operator = Operator::read(&text).ok_or_else(|| unknown(&text))?;
        let returns_bool = binary.return_bool();
        match (left, right) {
            (ExpressionValue::Scalar(left), ExpressionValue::Scalar(right)) => {
                let pairs = left.into_iter().zip(right);
                Ok(ExpressionValue::Scalar(
                    pairs.map(|(one, other)| operator.of(one, other)).collect(),
                ))
            }
            (ExpressionValue::Vector(columns), ExpressionValue::Scalar(numbers)) => {
                with_numbers(columns, operator, returns_bool, |step, value| {
                    operator.between(value, numbers[step], value, returns_bool)
                })
            }
            (ExpressionValue::Scalar(numbers), ExpressionValue::Vector(columns)) => {
                with_numbers(columns, operator, returns_bool, |step, value| {
                    operator.between(numbers[step], value, value, returns_bool)
                })
            }
            (ExpressionValue::Vector(left), ExpressionValue::Vector(right)) => {
                let (cardinality, included) = cardinality(binary);
                let matching =
                    VectorMatch { operator, returns_bool, cardinality, choice, included };
                let columns = matching.evaluated(left, right, steps.count, self.budget)?;
                Ok(ExpressionValue::Vector(columns))
            }
            _ => {
                Err(bad_data("binary expression must contain only scalar and instant vector types"))
            }
        }
    }

    fn ranges(&self, expression: &Expr, steps: Steps) -> EvaluationResult<Ranges> {
        match expression {
            Expr::Paren(inner) => self.ranges(&inner.expr, steps),
            Expr::MatrixSelector(matrix) => {
                let selector = &matrix.vs;
                let placed = TimePlacement::new(
                    selector.offset.as_ref(),
                    selector.at.as_ref(),
                    &self.whole_ms,
                );
                let range_ms = milliseconds(matrix.range);
                let reading = (self.source, self.budget);
                let series = selected(selector, placed, range_ms, &steps, reading)?;
                Ok(Ranges { series, range_ms, placed })
            }
            Expr::Subquery(subquery) => self.subquery(subquery, steps),
            _ => Err(bad_data("expected type range vector")),
        }
    }

    /// Evaluates the inner expression at multiples of the subquery's step.
    fn subquery(&self, subquery: &SubqueryExpr, steps: Steps) -> EvaluationResult<Ranges> {
        let placed =
            TimePlacement::new(subquery.offset.as_ref(), subquery.at.as_ref(), &self.whole_ms);
        let range_ms = milliseconds(subquery.range);
        let step_ms = subquery.step.map_or(SUBQUERY_STEP_MS, milliseconds).max(1);
        let (start_ms, end_ms) = placed.reach(&steps);
        let start_ms = start_ms.saturating_sub(range_ms);
        // The division cuts towards zero, as that of Go.
        let mut first_ms = (start_ms / step_ms).saturating_mul(step_ms);
        if first_ms < start_ms {
            first_ms = first_ms.saturating_add(step_ms);
        }
        let inner = Steps::between(first_ms, end_ms, step_ms);
        let columns =
            if inner.count == 0 { Vec::new() } else { self.vector(&subquery.expr, inner)? };
        let samples = |column: StepColumn| {
            let points = inner.times_ms().zip(column.values);
            let (times_ms, values) = points.filter(|(_, value)| !is_absent(*value)).unzip();
            SampledSeries { labels: column.labels, times_ms, values }
        };
        let series = columns.into_iter().map(samples).collect();
        Ok(Ranges { series, range_ms, placed })
    }
}

/// Returns how many series of each side may match, and the labels that a result takes from the
/// side of which one series matches.
fn cardinality(binary: &BinaryExpr) -> (Cardinality, Vec<String>) {
    match binary.modifier.as_ref().map(|modifier| &modifier.card) {
        Some(VectorMatchCardinality::ManyToOne(labels)) => {
            (Cardinality::ManyToOne, labels.labels.clone())
        }
        Some(VectorMatchCardinality::OneToMany(labels)) => {
            (Cardinality::OneToMany, labels.labels.clone())
        }
        _ => (Cardinality::OneToOne, Vec::new()),
    }
}

/// Returns the chosen labels of a modifier. Without a modifier, it is `missing` of no labels.
fn choice(modifier: Option<&LabelModifier>, missing: fn(BTreeSet<String>) -> Choice) -> Choice {
    let names = |labels: &Labels| labels.labels.iter().cloned().collect();
    match modifier {
        None => missing(BTreeSet::new()),
        Some(LabelModifier::Include(labels)) => Choice::Only(names(labels)),
        Some(LabelModifier::Exclude(labels)) => Choice::AllBut(names(labels)),
    }
}

/// Returns an expression without parentheses around it.
pub(crate) fn peeled(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => peeled(&inner.expr),
        other => other,
    }
}

fn with_numbers(
    columns: Vec<StepColumn>,
    operator: Operator,
    returns_bool: bool,
    change: impl Fn(usize, f64) -> f64,
) -> EvaluationResult<ExpressionValue> {
    if operator.drops_metric() || returns_bool {
        return changed(columns, change);
    }
    let change = |mut column: StepColumn| {
        column.map(&change);
        column
    };
    let columns = columns.into_iter().map(change);
    Ok(ExpressionValue::Vector(columns.filter(|column| !column.is_empty()).collect()))
}
