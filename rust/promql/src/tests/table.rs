//! A table of questions with the answers that Prometheus' documentation promises.

use fleetcast_core::plane::Failure;

use super::samples::{asked, samples};
use crate::refusal::{QuestionRefusal, RefusalKind};
use crate::steps::Steps;

const SAMPLES: &str = r#"
    requests{job="api",code="200"} 0 30 60 90 120 150 180 210 240 270 300
    requests{job="api",code="500"} 0 3 6 9 12 0 3 6 9 12 15
    requests{job="db",code="200"} _ _ _ 10 20 30 stale
    temp{room="hall"} 20 21 22 21 20 19 18 19 20 21 22
    temp{room="lab"} -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
    size_bucket{le="1"} 5 10 15 20 25 30 35 40 45 50 55
    size_bucket{le="2"} 8 16 24 32 40 48 56 64 72 80 88
    size_bucket{le="+Inf"} 10 20 30 40 50 60 70 80 90 100 110
    info{job="api",version="7"} 1 1 1 1 1 1 1 1 1 1 1
"#;

/// Returns the answer at the time of the last sample.
fn at_the_end(question: &str) -> String {
    asked(&samples(SAMPLES), question, Steps::at(300_000)).unwrap_or_else(|error| match error {
        Failure::Refused(QuestionRefusal { kind, message }) => {
            format!("{}: {message}", kind.status().2)
        }
        Failure::Failed(error) => panic!("{error}"),
    })
}

#[test]
fn questions_have_the_answers_of_prometheus() {
    for (question, answer) in [
        // Selectors: the newest sample counts for five minutes, unless a mark ends the series.
        (r#"temp{room=~"h.*"}"#, r#"{__name__="temp", room="hall"} 22"#),
        (r#"temp{room!="hall"}"#, r#"{__name__="temp", room="lab"} -1"#),
        (r#"requests{job="db"}"#, ""),
        (r#"requests{job="db"} offset 2m30s"#, r#"{__name__="requests", code="200", job="db"} 30"#),
        (r#"temp{room="hall"} @ 60"#, r#"{__name__="temp", room="hall"} 22"#),
        (r#"temp{room="hall"} @ end() offset 1m"#, r#"{__name__="temp", room="hall"} 20"#),
        // Ranges are closed at both ends, and rates extrapolate to them.
        (r#"count_over_time(temp{room="hall"}[1m])"#, r#"{room="hall"} 3"#),
        (r#"rate(requests{code="200",job="api"}[1m])"#, r#"{code="200", job="api"} 1"#),
        (r#"increase(requests{code="500"}[5m])"#, r#"{code="500", job="api"} 27"#),
        (r#"irate(requests{code="500"}[5m])"#, r#"{code="500", job="api"} 0.1"#),
        (r#"delta(temp{room="hall"}[2m])"#, r#"{room="hall"} 4"#),
        (r#"resets(requests{code="500"}[5m])"#, r#"{code="500", job="api"} 1"#),
        (r#"changes(temp{room="lab"}[5m])"#, r#"{room="lab"} 0"#),
        (r#"deriv(temp{room="lab"}[5m])"#, r#"{room="lab"} 0"#),
        (
            r#"predict_linear(requests{code="200",job="api"}[5m], 60)"#,
            r#"{code="200", job="api"} 360"#,
        ),
        (r#"avg_over_time(temp{room="hall"}[1m])"#, r#"{room="hall"} 21"#),
        (r#"quantile_over_time(0.5, temp{room="hall"}[1m])"#, r#"{room="hall"} 21"#),
        ("max_over_time(sum(temp)[2m:30s])", "{} 21"),
        (r#"last_over_time(temp{room="lab"}[1m])"#, r#"{__name__="temp", room="lab"} -1"#),
        // Aggregation.
        ("sum(temp)", "{} 21"),
        ("count by (job) (requests)", r#"{job="api"} 2"#),
        ("avg without (code) (requests)", r#"{job="api"} 157.5"#),
        ("topk(1, temp)", r#"{__name__="temp", room="hall"} 22"#),
        ("bottomk(1, temp)", r#"{__name__="temp", room="lab"} -1"#),
        ("quantile(0.5, temp)", "{} 10.5"),
        (r#"count_values("value", temp{room="lab"})"#, r#"{value="-1"} 1"#),
        ("stddev(temp)", "{} 11.5"),
        // Operators and matching.
        ("2 ^ 3 ^ 2", "512"),
        ("1 > bool 2", "0"),
        ("temp > 0", r#"{__name__="temp", room="hall"} 22"#),
        ("0 < temp", r#"{__name__="temp", room="hall"} 22"#),
        ("temp >= bool 22", "{room=\"hall\"} 1\n{room=\"lab\"} 0"),
        (r#"requests{code="500"} / ignoring(code) requests{code="200"}"#, r#"{job="api"} 0.05"#),
        (
            "requests * on(job) group_left(version) info",
            "{code=\"200\", job=\"api\", version=\"7\"} 300\n{code=\"500\", job=\"api\", version=\"7\"} 15",
        ),
        ("temp and temp < 0", r#"{__name__="temp", room="lab"} -1"#),
        ("temp unless temp < 0", r#"{__name__="temp", room="hall"} 22"#),
        (
            "vector(1) or temp",
            "{} 1\n{__name__=\"temp\", room=\"hall\"} 22\n{__name__=\"temp\", room=\"lab\"} -1",
        ),
        ("-temp", "{room=\"hall\"} -22\n{room=\"lab\"} 1"),
        // Functions.
        ("histogram_quantile(0.5, size_bucket)", "{} 1"),
        ("histogram_quantile(0.9, size_bucket)", "{} 2"),
        ("histogram_quantile(0.25, size_bucket)", "{} 0.5"),
        (r#"absent(nothing{job="x",code=~"y"})"#, r#"{job="x"} 1"#),
        ("absent(temp)", ""),
        (r#"absent_over_time(nothing{job="x"}[5m])"#, r#"{job="x"} 1"#),
        (
            r#"label_replace(info, "v", "x-$1", "version", "(.*)")"#,
            r#"{__name__="info", job="api", v="x-7", version="7"} 1"#,
        ),
        (
            r#"label_join(info, "v", "/", "job", "version")"#,
            r#"{__name__="info", job="api", v="api/7", version="7"} 1"#,
        ),
        ("clamp(temp, 0, 10)", "{room=\"hall\"} 10\n{room=\"lab\"} 0"),
        ("round(vector(2.5))", "{} 3"),
        ("round(vector(17), 5)", "{} 15"),
        (
            "sort(temp)",
            "{__name__=\"temp\", room=\"lab\"} -1\n{__name__=\"temp\", room=\"hall\"} 22",
        ),
        ("scalar(temp)", "NaN"),
        ("time()", "300"),
        ("hour(vector(7200))", "{} 2"),
        (r#"timestamp(temp{room="lab"} offset 15s)"#, r#"{room="lab"} 270"#),
        ("sgn(temp)", "{room=\"hall\"} 1\n{room=\"lab\"} -1"),
    ] {
        assert_eq!(at_the_end(question), answer, "{question}");
    }
}

#[test]
fn answers_at_steps_begin_and_end_with_their_samples() {
    let steps = Steps::between(0, 240_000, 60_000);
    let answer = |question| asked(&samples(SAMPLES), question, steps).unwrap();
    assert_eq!(
        answer(r#"requests{job="db"}"#),
        r#"{__name__="requests", code="200", job="db"} _ _ 20 _ _"#,
        "a mark ends a series"
    );
    assert_eq!(
        answer(r#"rate(requests{job="db"}[1m])"#),
        r#"{code="200", job="db"} _ _ 0.3333333333333333 0.3333333333333333 _"#
    );
    assert_eq!(answer("time() - 60"), "-60 0 60 120 180");
    assert_eq!(
        answer(r#"temp{room="hall"} @ start()"#),
        r#"{__name__="temp", room="hall"} 20 20 20 20 20"#
    );
}

#[test]
fn a_question_outside_the_language_is_refused_by_name() {
    for (question, name) in [
        ("holt_winters(temp[5m], 0.5, 0.5)", "holt_winters"),
        ("sin(temp)", "sin"),
        ("limitk(1, temp)", "limitk"),
        ("sum(made_up(temp))", "made_up"),
        (r#"{a="b" or c="d"}"#, "or between matchers"),
    ] {
        let Err(Failure::Refused(refusal)) = asked(&samples(SAMPLES), question, Steps::at(0))
        else {
            panic!("{question} has an answer");
        };
        assert_eq!(refusal.kind, RefusalKind::BadData, "{question}");
        assert!(refusal.message.contains(name), "{question}: {}", refusal.message);
    }
}

#[test]
fn matches_beyond_the_cardinality_are_refused() {
    for (question, words) in [
        ("requests / on(job) requests", "many-to-many matching not allowed"),
        ("requests / on(job) info", "many-to-one matching must be explicit"),
        ("requests * on(job) group_left(code) info", "grouping labels must ensure unique matches"),
        (r#"label_replace(temp, "room", "x", "room", ".*")"#, "same labelset"),
        (r#"rate({__name__=~"requests|info",job="api"}[5m])"#, ""),
    ] {
        let answer = at_the_end(question);
        assert!(words.is_empty() || answer.starts_with("execution: "), "{question}: {answer}");
        assert!(answer.contains(words), "{question}: {answer}");
    }
}
