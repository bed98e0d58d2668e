//! Calls of functions.

use promql_parser::parser::{Call, Expr};

use fleetcast_core::query::labelled::Labels;

use super::{Evaluator, peeled};
use crate::column::{ABSENT, ExpressionValue, SAME_LABELS, StepColumn, changed, is_absent, joined};
use crate::functions::histogram::histogram_quantile;
use crate::functions::{absent, calendar, numbers, over_time, rate, regression, relabel, sorting};
use crate::labels::without_metric;
use crate::refusal::{EvaluationResult, bad_data, execution, unknown};
use crate::selector::seconds;
use crate::steps::Steps;
use crate::window::RangeFunction;

/// Functions of windows, by name.
const RANGE_FUNCTIONS: [(&str, RangeFunction); 20] = [
    ("avg_over_time", over_time::avg),
    ("changes", over_time::changes),
    ("count_over_time", over_time::count),
    ("delta", rate::delta),
    ("deriv", regression::deriv),
    ("idelta", rate::idelta),
    ("increase", rate::increase),
    ("irate", rate::irate),
    ("last_over_time", over_time::last),
    ("max_over_time", over_time::max),
    ("min_over_time", over_time::min),
    ("predict_linear", regression::predict_linear),
    ("present_over_time", over_time::present),
    ("quantile_over_time", over_time::quantile_of),
    ("rate", rate::rate),
    ("resets", over_time::resets),
    ("stddev_over_time", over_time::stddev),
    ("stdvar_over_time", over_time::stdvar),
    ("sum_over_time", over_time::sum),
    ("absent_over_time", over_time::present),
];

/// All other functions.
const OTHERS: [&str; 14] = [
    "absent",
    "clamp",
    "clamp_max",
    "clamp_min",
    "histogram_quantile",
    "label_join",
    "label_replace",
    "round",
    "scalar",
    "sort",
    "sort_desc",
    "time",
    "timestamp",
    "vector",
];

/// A function by its name.
fn find<F: Copy>(functions: &[(&str, F)], name: &str) -> Option<F> {
    functions.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

/// Returns true for a function of the language.
pub(crate) fn is_known(name: &str) -> bool {
    find(&RANGE_FUNCTIONS, name).is_some()
        || find(&numbers::FUNCTIONS, name).is_some()
        || find(&calendar::FUNCTIONS, name).is_some()
        || OTHERS.contains(&name)
}

impl Evaluator<'_> {
    /// Evaluates a call.
    pub(super) fn called(&self, call: &Call, steps: Steps) -> EvaluationResult<ExpressionValue> {
        let name = call.func.name;
        let arguments: Vec<&Expr> = call.args.args.iter().map(|each| peeled(each)).collect();
        if let Some(function) = find(&RANGE_FUNCTIONS, name) {
            return self.ranged(name, function, &arguments, steps).map(ExpressionValue::Vector);
        }
        if let Some(function) = find(&numbers::FUNCTIONS, name) {
            return changed(self.vector(argument(&arguments, 0)?, steps)?, |_, value| {
                function(value)
            });
        }
        if let Some(function) = find(&calendar::FUNCTIONS, name) {
            let columns = match arguments.first() {
                Some(argument) => self.vector(argument, steps)?,
                None => vec![self.of_time(steps)?],
            };
            return changed(columns, |_, value| function(value));
        }
        self.called_other(name, &arguments, steps)
    }

    fn called_other(
        &self,
        name: &str,
        arguments: &[&Expr],
        steps: Steps,
    ) -> EvaluationResult<ExpressionValue> {
        let vector = |at: usize| self.vector(argument(arguments, at)?, steps);
        let numbers = |at: usize| self.numbers(argument(arguments, at)?, steps);
        match name {
            "time" => self.scalar(steps, seconds),
            "vector" => {
                let column = StepColumn { labels: Labels::new(), values: numbers(0)? };
                Ok(ExpressionValue::Vector(vec![column]))
            }
            "scalar" => {
                self.budget.take(steps.count)?;
                Ok(ExpressionValue::Scalar(single(&vector(0)?, steps.count)))
            }
            "timestamp" => match argument(arguments, 0)? {
                Expr::VectorSelector(selector) => {
                    changed(self.selected(selector, steps, true)?, |_, time| time)
                }
                other => {
                    changed(self.vector(other, steps)?, |step, _| seconds(steps.time_ms(step)))
                }
            },
            "round" | "clamp" | "clamp_max" | "clamp_min" => self.bounded(name, arguments, steps),
            "sort" | "sort_desc" => {
                Ok(ExpressionValue::Vector(sorting::sorted(vector(0)?, name == "sort_desc")))
            }
            "absent" => {
                let columns = vector(0)?;
                self.absent(&columns, argument(arguments, 0)?, steps).map(ExpressionValue::Vector)
            }
            "histogram_quantile" => {
                let columns = histogram_quantile(&numbers(0)?, vector(1)?);
                joined(columns, SAME_LABELS).map(ExpressionValue::Vector)
            }
            "label_join" | "label_replace" => self.relabelled(name, vector(0)?, arguments),
            other => Err(unknown(other)),
        }
    }

    /// Evaluates `round` and `clamp*`.
    fn bounded(
        &self,
        name: &str,
        arguments: &[&Expr],
        steps: Steps,
    ) -> EvaluationResult<ExpressionValue> {
        let columns = self.vector(argument(arguments, 0)?, steps)?;
        let numbers = |at: usize| self.numbers(argument(arguments, at)?, steps);
        match name {
            "round" => {
                let multiples = arguments.get(1).map(|_| numbers(1)).transpose()?;
                let multiple = |step: usize| multiples.as_ref().map_or(1.0, |each| each[step]);
                changed(columns, |step, value| numbers::rounded(value, multiple(step)))
            }
            "clamp_min" => {
                let min = numbers(1)?;
                changed(columns, |step, value| numbers::larger(min[step], value))
            }
            "clamp_max" => {
                let max = numbers(1)?;
                changed(columns, |step, value| numbers::smaller(max[step], value))
            }
            "clamp" => {
                let (min, max) = (numbers(1)?, numbers(2)?);
                changed(columns, |step, value| {
                    if max[step] < min[step] {
                        return ABSENT;
                    }
                    numbers::larger(min[step], numbers::smaller(max[step], value))
                })
            }
            other => Err(unknown(other)),
        }
    }

    /// Evaluates `label_replace` and `label_join`.
    fn relabelled(
        &self,
        name: &str,
        mut columns: Vec<StepColumn>,
        arguments: &[&Expr],
    ) -> EvaluationResult<ExpressionValue> {
        let text = |at| text(arguments, at);
        if name == "label_replace" {
            let texts = [text(1)?, text(2)?, text(3)?, text(4)?];
            relabel::label_replace(&mut columns, texts, self.budget)?;
        } else {
            let sources =
                (3..arguments.len()).map(text).collect::<EvaluationResult<Vec<&str>>>()?;
            relabel::label_join(&mut columns, text(1)?, text(2)?, &sources, self.budget)?;
        }
        joined(columns, SAME_LABELS).map(ExpressionValue::Vector)
    }

    /// Returns 1 at each step at which none of the columns has a value.
    fn absent(
        &self,
        columns: &[StepColumn],
        expression: &Expr,
        steps: Steps,
    ) -> EvaluationResult<Vec<StepColumn>> {
        self.budget.take(steps.count)?;
        Ok(absent::absent(columns, steps.count, expression))
    }

    /// Returns the time of each step as a series without labels.
    fn of_time(&self, steps: Steps) -> EvaluationResult<StepColumn> {
        self.budget.take(steps.count)?;
        Ok(StepColumn { labels: Labels::new(), values: steps.times_ms().map(seconds).collect() })
    }

    fn ranged(
        &self,
        name: &str,
        function: RangeFunction,
        arguments: &[&Expr],
        steps: Steps,
    ) -> EvaluationResult<Vec<StepColumn>> {
        let (range_at, parameter_at) = match name {
            "quantile_over_time" => (1, Some(0)),
            "predict_linear" => (0, Some(1)),
            _ => (0, None),
        };
        let parameters = match parameter_at {
            Some(at) => self.numbers(argument(arguments, at)?, steps)?,
            None => Vec::new(),
        };
        let range = argument(arguments, range_at)?;
        let ranges = self.ranges(range, steps)?;
        let columns = ranges.evaluated(steps, function, &parameters, self.budget)?;
        if name == "absent_over_time" {
            return self.absent(&columns, range, steps);
        }
        let columns = columns.into_iter().filter(|column| !column.is_empty());
        if name == "last_over_time" {
            return Ok(columns.collect());
        }
        let unnamed =
            |column: StepColumn| StepColumn { labels: without_metric(column.labels), ..column };
        // Prometheus refuses equal labels of two series, even at steps of their own.
        let columns: Vec<StepColumn> = columns.map(unnamed).collect();
        let count = columns.len();
        let columns = joined(columns, SAME_LABELS)?;
        if columns.len() < count {
            return Err(execution(SAME_LABELS));
        }
        Ok(columns)
    }
}

fn argument<'e>(arguments: &[&'e Expr], at: usize) -> EvaluationResult<&'e Expr> {
    arguments.get(at).copied().ok_or_else(|| bad_data("an argument is missing"))
}

fn text<'e>(arguments: &[&'e Expr], at: usize) -> EvaluationResult<&'e str> {
    match argument(arguments, at)? {
        Expr::StringLiteral(text) => Ok(&text.val),
        _ => Err(bad_data("expected type string")),
    }
}

/// Returns the value of the only series at each step, or NaN if there is no series or several.
fn single(columns: &[StepColumn], steps: usize) -> Vec<f64> {
    let mut found = vec![ABSENT; steps];
    for column in columns {
        for (single, value) in found.iter_mut().zip(&column.values) {
            if !is_absent(*value) {
                *single = if is_absent(*single) { *value } else { f64::NAN };
            }
        }
    }
    found.into_iter().map(|value| if is_absent(value) { f64::NAN } else { value }).collect()
}
