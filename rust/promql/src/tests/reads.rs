//! Remote reads: messages of queries, and the samples in the answers.

use std::time::Duration;

use fleetcast_core::plane::Failure;
use prost::Message;

use super::samples::samples;
use crate::budget::SampleBudget;
use crate::http::remote_read::{
    LabelMessage, ReadCondition, ReadQuery, ReadRequest, SampleMessage, SeriesMessage, read,
};
use crate::refusal::QuestionError;

const SAMPLES: &str = r#"
    temp{room="hall"} 20 21 22
    temp{room="lab"} -1 _ -3
    up{room="hall"} 1 1 1
"#;

#[derive(Clone, PartialEq, Message)]
struct ReadResponse {
    #[prost(message, repeated, tag = "1")]
    results: Vec<QueryResult>,
}

#[derive(Clone, PartialEq, Message)]
struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    series: Vec<SeriesMessage>,
}

fn query(start_ms: i64, end_ms: i64, conditions: &[(i32, &str, &str)]) -> ReadQuery {
    let condition = |(test, label, value): &(i32, &str, &str)| ReadCondition {
        test: *test,
        label: (*label).to_owned(),
        value: (*value).to_owned(),
    };
    ReadQuery { start_ms, end_ms, conditions: conditions.iter().map(condition).collect() }
}

fn asked(queries: Vec<ReadQuery>, samples_max: usize) -> Result<Vec<QueryResult>, QuestionError> {
    let budget = SampleBudget::new(samples_max, Duration::from_hours(1));
    let request = ReadRequest { queries }.encode_to_vec();
    let packed = read(&request, &samples(SAMPLES), &budget)?;
    let response = snap::raw::Decoder::new().decompress_vec(&packed).unwrap();
    Ok(ReadResponse::decode(&*response).unwrap().results)
}

fn series(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> SeriesMessage {
    let label = |(name, value): &(&str, &str)| LabelMessage {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let sample = |(time_ms, value): &(i64, f64)| SampleMessage { value: *value, time_ms: *time_ms };
    SeriesMessage {
        labels: labels.iter().map(label).collect(),
        samples: samples.iter().map(sample).collect(),
    }
}

/// Returns the words of a refusal.
fn refused(queries: Vec<ReadQuery>, samples_max: usize) -> String {
    match asked(queries, samples_max) {
        Err(Failure::Refused(refusal)) => refusal.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_query_has_the_series_that_meet_all_its_conditions() {
    let hall = [("__name__", "temp"), ("room", "hall")];
    let lab = [("__name__", "temp"), ("room", "lab")];
    let results = asked(
        vec![
            query(0, 30_000, &[(0, "__name__", "temp")]),
            query(0, 60_000, &[(2, "__name__", "te.p"), (3, "room", "h.*")]),
            query(0, 60_000, &[(2, "__name__", "te"), (1, "room", "hall")]),
        ],
        1_000,
    );
    let expected = vec![
        QueryResult {
            series: vec![series(&hall, &[(0, 20.0), (30_000, 21.0)]), series(&lab, &[(0, -1.0)])],
        },
        QueryResult { series: vec![series(&lab, &[(0, -1.0), (60_000, -3.0)])] },
        QueryResult { series: vec![] }, // an expression matches the whole value
    ];
    assert_eq!(results.unwrap(), expected);
}

#[test]
fn a_malformed_read_is_refused_in_words() {
    let budget = SampleBudget::new(1_000, Duration::from_hours(1));
    assert!(read(b"\x0a\x05", &samples(SAMPLES), &budget).is_err());
    assert!(refused(vec![query(0, 1, &[(4, "a", "b")])], 1_000).contains("type of a matcher: 4"));
    assert!(refused(vec![query(0, 1, &[(2, "a", "(")])], 1_000).contains("regex"));
    let large = (2, "a", r"\w{99}\w{99}");
    let words = refused(vec![query(0, 1, &[large; 20])], 1_000);
    assert!(words.contains("regular expressions"), "{words}");
    assert!(refused(vec![query(1, 0, &[])], 1_000).contains("before start"));
}

#[test]
fn samples_and_the_bytes_of_their_messages_are_bounded() {
    let all = || vec![query(0, 60_000, &[(1, "room", "")])];
    assert!(asked(all(), 100).is_ok());
    assert!(refused(all(), 7).contains("too many samples"), "of eight samples");
    assert!(refused(all(), 10).contains("too many samples"), "each message takes more than two");
    assert!(refused([all(), all()].concat(), 25).contains("too many samples"));
}
