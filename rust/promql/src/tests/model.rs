//! Windows and steps beside a plain model of them.

use proptest::prelude::*;

use fleetcast_core::query::labelled::METRIC;

use super::samples::{Samples, asked};
use crate::column::ABSENT;
use crate::source::SampledSeries;
use crate::steps::Steps;

/// Times in milliseconds, strictly ascending, and values; some of them end the series.
fn points() -> impl Strategy<Value = Vec<(i64, f64)>> {
    let value = prop_oneof![4 => (-5_i32..50).prop_map(f64::from), 1 => Just(ABSENT)];
    prop::collection::vec((1_i64..200_000, value), 0..40).prop_map(|steps| {
        let mut time_ms = 0;
        let point = |(gap_ms, value): (i64, f64)| {
            time_ms += gap_ms;
            (time_ms, value)
        };
        steps.into_iter().map(point).collect()
    })
}

fn source(points: &[(i64, f64)]) -> Samples {
    let (times_ms, values) = points.iter().copied().unzip();
    Samples(vec![SampledSeries { labels: vec![(METRIC.into(), "x".into())], times_ms, values }])
}

/// Returns the numbers of the only series, or of none.
fn numbers(answer: &str, steps: usize) -> Vec<Option<f64>> {
    let Some((_, numbers)) = answer.split_once("} ") else { return vec![None; steps] };
    numbers.split(' ').map(|text| text.parse().ok()).collect()
}

proptest! {
    #[test]
    fn windows_hold_the_samples_of_their_range(
        points in points(),
        start_ms in 0_i64..2_000_000,
        step_ms in 1_i64..300_000,
        range_ms in 1_i64..600_000,
        offset_ms in -100_000_i64..100_000,
    ) {
        let steps = Steps::between(start_ms, start_ms + 12 * step_ms, step_ms);
        let sign = if offset_ms < 0 { "-" } else { "" };
        let offset = if offset_ms == 0 { String::new() } else { format!(" offset {sign}{}ms", offset_ms.abs()) };
        let question = format!("sum_over_time(x[{range_ms}ms]{offset})");
        let found = numbers(&asked(&source(&points), &question, steps).unwrap(), steps.count);
        for (step, found) in found.into_iter().enumerate() {
            let end_ms = steps.time_ms(step) - offset_ms;
            let within = points.iter().filter(|(time_ms, value)| {
                (end_ms - range_ms..=end_ms).contains(time_ms) && value.is_finite()
            });
            let expected: Vec<f64> = within.map(|(_, value)| *value).collect();
            let expected = (!expected.is_empty()).then(|| expected.iter().sum::<f64>());
            prop_assert_eq!(found, expected, "step {}", step);
        }
    }

    #[test]
    fn a_step_shows_the_newest_sample_of_five_minutes(
        points in points(),
        start_ms in 0_i64..2_000_000,
        step_ms in 1_i64..300_000,
    ) {
        let steps = Steps::between(start_ms, start_ms + 12 * step_ms, step_ms);
        let found = numbers(&asked(&source(&points), "x", steps).unwrap(), steps.count);
        for (step, found) in found.into_iter().enumerate() {
            let end_ms = steps.time_ms(step);
            let newest = points.iter().rev().find(|(time_ms, _)| *time_ms <= end_ms);
            let newest = newest.filter(|(time_ms, value)| {
                *time_ms >= end_ms - 300_000 && value.is_finite()
            });
            prop_assert_eq!(found, newest.map(|(_, value)| *value), "step {}", step);
        }
    }

    #[test]
    fn a_question_at_steps_answers_as_questions_at_each(
        points in points(),
        start_ms in 0_i64..1_000_000,
        step_ms in 1_000_i64..200_000,
        question in prop_oneof![
            Just("rate(x[3m])"),
            Just("increase(x[5m:1m])"),
            Just("x > 10 or -x"),
            Just("avg(x) / stddev_over_time(x[10m])"),
            Just("absent(x)"),
            Just("topk(1, x)"),
            Just("deriv(x[4m])"),
        ],
    ) {
        let steps = Steps::between(start_ms, start_ms + 7 * step_ms, step_ms);
        let all = source(&points);
        let whole = asked(&all, question, steps).unwrap();
        let mut values = vec![None; steps.count];
        for line in whole.lines() {
            for (value, found) in values.iter_mut().zip(numbers(line, steps.count)) {
                *value = value.or(found);
            }
        }
        for (step, value) in values.into_iter().enumerate() {
            let single = asked(&all, question, Steps::at(steps.time_ms(step))).unwrap();
            let single = numbers(&single, 1)[0];
            let is_same = match (value, single) {
                (Some(one), Some(other)) => one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan(),
                (one, other) => one == other,
            };
            prop_assert!(is_same, "step {}: {:?} and {:?}", step, value, single);
        }
    }
}
