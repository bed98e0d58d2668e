//! Remote reads: messages of queries, and the samples in the answers.

use std::time::Duration;

use fleetcast_core::plane::Failure;
use prost::Message;

use super::samples::samples;
use crate::budget::SampleBudget;
use crate::http::frames::crc32c;
use crate::http::messages::{
    FrameMessage, LabelMessage, ReadCondition, ReadQuery, ReadRequest, SampleMessage, SeriesMessage,
};
use crate::http::remote_read::{ReadAnswer, read};
use crate::http::xor_chunk::xor_chunk;
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
    let request = ReadRequest { queries, accepted: Vec::new() }.encode_to_vec();
    let answer = read(&request, &samples(SAMPLES), &budget)?;
    let ReadAnswer::Samples(packed) = answer else { panic!("samples are the kind by default") };
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

/// Returns the frames of a read that accepts these kinds of answers.
fn framed(
    source: &str,
    queries: Vec<ReadQuery>,
    accepted: &[i32],
    samples_max: usize,
) -> Result<Vec<FrameMessage>, QuestionError> {
    let budget = SampleBudget::new(samples_max, Duration::from_hours(1));
    let request = ReadRequest { queries, accepted: accepted.to_vec() }.encode_to_vec();
    let answer = read(&request, &samples(source), &budget)?;
    let ReadAnswer::Frames(bytes) = answer else { return Ok(Vec::new()) };
    let mut rest = bytes.as_slice();
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = prost::decode_length_delimiter(&mut rest).unwrap();
        let (sum, after) = rest.split_first_chunk().unwrap();
        let (message, after) = after.split_at(length);
        assert_eq!(u32::from_be_bytes(*sum), crc32c(message));
        frames.push(FrameMessage::decode(message).unwrap());
        rest = after;
    }
    Ok(frames)
}

#[test]
fn a_streamed_read_has_a_frame_for_each_series_in_chunks_of_120_samples() {
    let long = format!("{SAMPLES}\n many{}", " 7".repeat(250));
    let queries = vec![
        query(0, 60_000, &[(0, "__name__", "temp")]),
        query(0, 10_000_000, &[(0, "__name__", "many")]),
    ];
    let frames = framed(&long, queries, &[1, 0], 10_000).unwrap();
    let of = |frame: &FrameMessage| {
        let series = &frame.series[0];
        let times = series.chunks.iter().map(|chunk| (chunk.min_time_ms, chunk.max_time_ms));
        (frame.query, series.labels.last().unwrap().value.clone(), times.collect::<Vec<_>>())
    };
    let times = vec![(0, 3_570_000), (3_600_000, 7_170_000), (7_200_000, 7_470_000)];
    assert_eq!(
        frames.iter().map(of).collect::<Vec<_>>(),
        [
            (0, "hall".to_owned(), vec![(0, 60_000)]),
            (0, "lab".to_owned(), vec![(0, 60_000)]),
            (1, "many".to_owned(), times),
        ]
    );
    let chunk = &frames[0].series[0].chunks[0];
    assert_eq!(chunk.encoding, 1, "XOR");
    assert_eq!(chunk.data, xor_chunk(&[0, 30_000, 60_000], &[20.0, 21.0, 22.0]));
}

#[test]
fn the_first_kind_of_answer_that_is_known_is_given() {
    let kinds = |accepted: &[i32]| {
        let frames = framed(SAMPLES, vec![query(0, 0, &[(0, "__name__", "up")])], accepted, 1_000);
        frames.map(|frames| !frames.is_empty())
    };
    assert!(!kinds(&[]).unwrap());
    assert!(!kinds(&[0, 1]).unwrap());
    assert!(kinds(&[9, 1, 0]).unwrap());
    let Err(Failure::Refused(refusal)) = kinds(&[9]) else { panic!("no known kind") };
    assert!(refusal.message.contains("accepted types"), "{}", refusal.message);
}

#[test]
fn the_bytes_of_frames_are_bounded() {
    let all = || vec![query(0, 60_000, &[(1, "room", "")])];
    assert!(framed(SAMPLES, all(), &[1], 100).is_ok());
    for samples_max in [7, 27] {
        let Err(Failure::Refused(refusal)) = framed(SAMPLES, all(), &[1], samples_max) else {
            panic!("{samples_max} samples are too few")
        };
        assert!(refusal.message.contains("too many samples"), "{}", refusal.message);
    }
}
