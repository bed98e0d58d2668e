//! A store of samples in memory, and samples written as texts.

use fleetcast_core::query::labelled::{LabelBounds, LabelMatcher, LabelRefusal, Labels, METRIC};

use crate::budget::SampleBudget;
use crate::column::{ABSENT, ExpressionValue, is_absent};
use crate::evaluator::Evaluator;
use crate::labels;
use crate::language;
use crate::refusal::{EvaluationResult, passed};
use crate::source::{SampledSeries, Source};
use crate::steps::Steps;

/// Samples of some series, sorted by labels.
pub(super) struct Samples(pub(super) Vec<SampledSeries>);

impl Source for Samples {
    fn select(
        &self,
        matchers: &[LabelMatcher],
        start_ms: i64,
        end_ms: i64,
        bounds: LabelBounds,
    ) -> EvaluationResult<Vec<SampledSeries>> {
        let is_wanted = |labels: &Labels| {
            matchers.iter().all(|each| each.matches(labels::value(labels, &each.label)))
        };
        let mut found = Vec::new();
        let mut count = 0;
        for series in self.0.iter().filter(|series| is_wanted(&series.labels)) {
            let samples = series.times_ms.iter().copied().zip(series.values.iter().copied());
            let within = samples.filter(|(time_ms, _)| (start_ms..=end_ms).contains(time_ms));
            let (times_ms, values): (Vec<i64>, Vec<f64>) = within.unzip();
            count += values.len();
            if !values.is_empty() {
                found.push(SampledSeries { labels: series.labels.clone(), times_ms, values });
            }
        }
        if count > bounds.samples_max {
            Err(passed(LabelRefusal::TooManySamples))
        } else {
            Ok(found)
        }
    }
}

/// Reads lines such as `up{job="a"} 1 _ 0 stale`: values 30 seconds apart from the time 0 on.
pub(super) fn samples(lines: &str) -> Samples {
    let series = lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let (name, values) =
            line.split_at(line.find("} ").map_or(line.find(' ').unwrap(), |at| at + 1));
        let (metric, rest) = name.split_once('{').unwrap_or((name, "}"));
        let mut found: Labels = vec![(METRIC.into(), metric.into())];
        for pair in rest.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once('=').unwrap();
            labels::set(&mut found, label, value.trim_matches('"'));
        }
        let points = values.split_whitespace().enumerate().filter(|(_, text)| *text != "_");
        let (times_ms, values) = points
            .map(|(at, text)| {
                let value = if text == "stale" { ABSENT } else { text.parse().unwrap() };
                (i64::try_from(at).unwrap() * 30_000, value)
            })
            .unzip();
        SampledSeries { labels: found, times_ms, values }
    });
    let mut all: Vec<SampledSeries> = series.collect();
    all.sort_by(|one, other| one.labels.cmp(&other.labels));
    Samples(all)
}

/// Evaluates a question, and writes its value: a line for each series, with a value for each step.
pub(super) fn asked(source: &dyn Source, question: &str, steps: Steps) -> EvaluationResult<String> {
    let budget = SampleBudget::new(1_000_000, std::time::Duration::from_hours(1));
    let expression = language::read(question)?;
    let whole_ms = steps.start_ms..=steps.end_ms();
    let value = Evaluator { source, budget: &budget, whole_ms }.evaluated(&expression, steps)?;
    let number = |value: &f64| if is_absent(*value) { "_".to_owned() } else { value.to_string() };
    let numbers = |values: &[f64]| values.iter().map(number).collect::<Vec<_>>().join(" ");
    Ok(match value {
        ExpressionValue::Scalar(values) => numbers(&values),
        ExpressionValue::Text(text) => text,
        ExpressionValue::Vector(columns) => {
            let line = |column: &crate::column::StepColumn| {
                format!("{} {}", labels::written(&column.labels), numbers(&column.values))
            };
            columns.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    })
}
