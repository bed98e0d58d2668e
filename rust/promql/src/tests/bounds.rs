//! Questions that would take far more than they are long. A question of these tests may use a million
//! samples of 16 bytes each.

use fleetcast_core::plane::Failure;

use super::samples::{Samples, asked, samples};
use crate::refusal::{QuestionRefusal, RefusalKind};
use crate::steps::Steps;

/// Samples of 1,200 series with a value of their own each, and of 300 series that each have a value
/// at a step of its own.
fn many() -> Samples {
    let many = (0..1_200).map(|at| format!(r#"many{{at="{at}"}} {at}"#));
    let one = (0..300).map(|at| format!(r#"one{{at="{at}"}} {}1 stale"#, "_ ".repeat(at)));
    samples(&many.chain(one).collect::<Vec<String>>().join("\n"))
}

fn refusal(source: &Samples, question: &str, steps: Steps) -> QuestionRefusal {
    let shown: String = question.chars().take(100).collect();
    match asked(source, question, steps) {
        Err(Failure::Refused(refusal)) => refusal,
        Err(Failure::Failed(error)) => panic!("{shown}: {error}"),
        Ok(answer) => panic!("{shown} has an answer of {} bytes", answer.len()),
    }
}

fn assert_too_many(source: &Samples, question: &str, steps: Steps) {
    let message = refusal(source, question, steps).message;
    assert!(message.contains("too many samples"), "{message}");
}

/// Returns a question whose label `at` is that of `of`, doubled some times.
fn doubled(of: &str, times: usize) -> String {
    (0..times)
        .fold(of.to_owned(), |inner, _| format!(r#"label_join({inner}, "at", "-", "at", "at")"#))
}

#[test]
fn labels_that_a_question_makes_count_as_samples() {
    let all = many();
    let of_one = doubled(r#"many{at="0"}"#, 13);
    let name = "n".repeat(15_000);
    for question in [
        doubled("many", 13),
        format!(r#"label_replace(many, "{name}", "1", "", "")"#),
        format!(r#"count_values("{name}", many)"#),
        format!("many * on() group_left(at) {of_one}"),
        vec!["many"; 200].join(" or "),
    ] {
        assert_too_many(&all, &question, Steps::at(0));
    }
}

#[test]
fn a_label_that_a_question_makes_has_a_length() {
    let tenfold = |times| {
        (0..times).fold(r#"many{at="0"}"#.to_owned(), |inner, _| {
            format!(r#"label_replace({inner}, "at", "{}", "at", "(.*)")"#, "$1".repeat(10))
        })
    };
    let all = many();
    let of_one = |times| doubled(r#"many{at="0"}"#, times);
    for (question, longer) in [(tenfold(4), tenfold(5)), (of_one(15), of_one(16))] {
        assert!(asked(&all, &question, Steps::at(0)).unwrap().len() > 1 << 13);
        let refusal = refusal(&all, &longer, Steps::at(0));
        assert_eq!(refusal.kind, RefusalKind::Execution);
        assert!(refusal.message.contains("at most 65536 bytes"), "{}", refusal.message);
    }
}

#[test]
fn series_that_a_question_makes_count_as_samples() {
    let all = many();
    for (question, steps) in [
        (r#"count_values("value", vector(time()))"#, Steps::between(0, 1_499, 1)),
        (r#"many{at=~".|.."} * on() group_left() one"#, Steps::between(0, 299 * 30_000, 30_000)),
    ] {
        assert_too_many(&all, question, steps);
    }
}

#[test]
fn steps_without_a_series_count_as_samples() {
    let all = many();
    for values in ["absent(nothing)", "absent_over_time(nothing[1m])", "vector(scalar(nothing))"] {
        let question = format!("max_over_time({values}[100y:1ms])");
        assert_too_many(&all, &question, Steps::at(0));
    }
}

#[test]
fn expressions_of_a_question_have_a_size_together() {
    let all = many();
    let selector = |expression: &str, count| {
        let matchers = vec![format!(r#"at!~"{expression}""#); count];
        format!("many{{{}}}", matchers.join(","))
    };
    let word = r"(\\w{9}){3}";
    let with_groups = |braces| format!("{}{braces}", "()".repeat(5_000));
    assert!(asked(&all, &selector(word, 2), Steps::at(0)).is_ok());
    for question in [
        selector(word, 300),
        // Groups cost for each state. Braces that repeat no part are read a second time.
        selector(&with_groups(word), 1),
        selector(&with_groups("a{b}"), 1),
    ] {
        let refusal = refusal(&all, &question, Steps::at(0));
        assert_eq!(refusal.kind, RefusalKind::BadData);
        assert!(refusal.message.contains("at most 16777216 bytes"), "{}", refusal.message);
    }
    let replaced = format!(r#"label_replace(many, "a", "1", "at", "{}")"#, with_groups(word));
    assert_too_many(&all, &replaced, Steps::at(0));
}

#[test]
fn a_line_reaches_from_the_first_to_the_last_instant() {
    let question = "predict_linear(vector(time())[5m:1m] @ 9200000000000000, 1)";
    let answer = asked(&many(), question, Steps::at(-9_200_000_000_000_000_000));
    assert!(answer.unwrap().starts_with("{} "));
}
