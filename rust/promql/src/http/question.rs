//! `query` and `query_range`.

use promql_parser::parser::Expr;
use promql_parser::parser::value::ValueType;

use fleetcast_core::model::json::write_string;
use fleetcast_core::query::labelled::Labels;

use super::json::{put_array, put_labels, put_point, put_time};
use super::parameters::ApiParameters;
use crate::budget::SampleBudget;
use crate::column::{ExpressionValue, StepColumn, is_absent};
use crate::evaluator::{Evaluator, peeled};
use crate::language::{self, invalid};
use crate::refusal::{EvaluationResult, bad_data};
use crate::source::{SampledSeries, Source};
use crate::steps::Steps;

/// Points of a series in one answer.
const POINTS_MAX: usize = 11_000;

/// Bytes of a value and its time in an answer, more than most take.
const POINT_BYTES: usize = 32;

/// Samples as which a value of an answer counts, in addition to the value itself.
const SAMPLES_PER_POINT: usize = 2;

/// Answers `query`: the value of an expression at one instant.
pub(super) fn query(
    given: &ApiParameters<'_>,
    now_ms: i64,
    (source, budget): (&dyn Source, &SampleBudget),
) -> EvaluationResult<Vec<u8>> {
    let time_ms = given.time_ms("time")?.unwrap_or(now_ms);
    let expression = language::read(&given.text("query").unwrap_or_default())?;
    let steps = Steps::at(time_ms);
    let evaluator = Evaluator { source, budget, whole_ms: time_ms..=time_ms };
    let mut out = Vec::new();
    if let Expr::MatrixSelector(_) | Expr::Subquery(_) = peeled(&expression) {
        let samples = evaluator.samples(&expression, time_ms)?;
        take_answer(samples.iter().map(|series| (&series.labels, series.values.len())), budget)?;
        put_head(&mut out, "matrix");
        put_matrix(&mut out, samples.iter().map(|series| (&series.labels, points(series))));
        out.extend_from_slice(b"}");
        return Ok(out);
    }
    match evaluator.evaluated(&expression, steps)? {
        ExpressionValue::Scalar(numbers) => {
            put_head(&mut out, "scalar");
            put_point(&mut out, time_ms, numbers.first().copied().unwrap_or(f64::NAN));
        }
        ExpressionValue::Text(text) => {
            put_head(&mut out, "string");
            out.push(b'[');
            put_time(&mut out, time_ms);
            out.push(b',');
            write_string(&mut out, &text);
            out.push(b']');
        }
        ExpressionValue::Vector(columns) => {
            take_answer(columns.iter().map(|column| (&column.labels, 1)), budget)?;
            put_head(&mut out, "vector");
            put_array(&mut out, &columns, |out, StepColumn { labels, values }| {
                out.extend_from_slice(br#"{"metric":"#);
                put_labels(out, labels);
                out.extend_from_slice(br#","value":"#);
                put_point(out, time_ms, values.first().copied().unwrap_or(f64::NAN));
                out.push(b'}');
            });
        }
    }
    out.push(b'}');
    Ok(out)
}

/// Answers `query_range`: the values of an expression at the steps of a range.
pub(super) fn query_range(
    given: &ApiParameters<'_>,
    (source, budget): (&dyn Source, &SampleBudget),
) -> EvaluationResult<Vec<u8>> {
    let (start_ms, end_ms, steps) = range(given)?;
    let expression = language::read(&given.text("query").unwrap_or_default())?;
    let kind = match expression.value_type() {
        ValueType::Matrix => Some("range vector"),
        ValueType::String => Some("string"),
        ValueType::Scalar | ValueType::Vector => None,
    };
    if let Some(kind) = kind {
        return Err(invalid(
            "query",
            &format!(
                "invalid expression type {kind:?} for range query, must be Scalar or instant Vector"
            ),
        ));
    }
    let evaluator = Evaluator { source, budget, whole_ms: start_ms..=end_ms };
    let mut columns = match evaluator.evaluated(&expression, steps)? {
        ExpressionValue::Scalar(values) => vec![StepColumn { labels: Vec::new(), values }],
        ExpressionValue::Vector(columns) => columns,
        ExpressionValue::Text(_) => return Err(bad_data("a text has no range")),
    };
    columns.sort_by(|one, other| one.labels.cmp(&other.labels));
    take_answer(columns.iter().map(|column| (&column.labels, steps.count)), budget)?;
    let values = columns.iter().flat_map(|column| &column.values);
    let points = values.filter(|value| !is_absent(**value)).count();
    let mut out = Vec::with_capacity(points * POINT_BYTES);
    put_head(&mut out, "matrix");
    put_matrix(
        &mut out,
        columns.iter().map(|column| {
            let points = steps.times_ms().zip(column.values.iter().copied());
            (&column.labels, points.filter(|(_, value)| !is_absent(*value)))
        }),
    );
    out.push(b'}');
    Ok(out)
}

/// Returns start, end and steps of a range.
fn range(given: &ApiParameters<'_>) -> EvaluationResult<(i64, i64, Steps)> {
    let missing = |name| invalid(name, "cannot parse \"\" to a valid timestamp");
    let start_ms = given.time_ms("start")?.ok_or_else(|| missing("start"))?;
    let end_ms = given.time_ms("end")?.ok_or_else(|| missing("end"))?;
    if end_ms < start_ms {
        return Err(invalid("end", "end timestamp must not be before start time"));
    }
    let step_ms = given.duration_ms("step")?;
    let step_ms =
        step_ms.ok_or_else(|| invalid("step", "cannot parse \"\" to a valid duration"))?;
    if step_ms <= 0 {
        return Err(invalid(
            "step",
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        ));
    }
    let steps = Steps::between(start_ms, end_ms, step_ms);
    if steps.count - 1 > POINTS_MAX {
        return Err(bad_data(format!(
            "exceeded maximum resolution of {POINTS_MAX} points per timeseries. Try decreasing the \
             query resolution (?step=XX)"
        )));
    }
    Ok((start_ms, end_ms, steps))
}

/// Takes the samples as which an answer counts: the labels and the number of points of each series.
fn take_answer<'c>(
    mut series: impl Iterator<Item = (&'c Labels, usize)>,
    budget: &SampleBudget,
) -> EvaluationResult<()> {
    series.try_for_each(|(labels, points)| budget.take_series(labels, points * SAMPLES_PER_POINT))
}

fn points(series: &SampledSeries) -> impl Iterator<Item = (i64, f64)> {
    series.times_ms.iter().copied().zip(series.values.iter().copied())
}

fn put_head(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(br#"{"resultType":""#);
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(br#"","result":"#);
}

fn put_matrix<'c, P: Iterator<Item = (i64, f64)>>(
    out: &mut Vec<u8>,
    series: impl Iterator<Item = (&'c Labels, P)>,
) {
    put_array(out, series, |out, (labels, points)| {
        out.extend_from_slice(br#"{"metric":"#);
        put_labels(out, labels);
        out.extend_from_slice(br#","values":"#);
        put_array(out, points, |out, (time_ms, value)| put_point(out, time_ms, value));
        out.push(b'}');
    });
}
