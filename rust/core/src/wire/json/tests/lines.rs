//! Records as lines.

use proptest::prelude::*;

use super::{INGEST_NS, TIME, words};
use crate::model::batch::{Batch, ParseResult};
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::{ParseContext, json_records, parse_json, parse_json_lines};

fn parse(body: &[u8]) -> ParseResult {
    let (names, limits) = (RawKeyCache::default(), WriteLimits::default());
    parse_json_lines(body, ParseContext::new(&names, &limits, "acme", INGEST_NS))
}

fn record(fields: &str) -> String {
    format!(r#"{{"measurement":"m",{TIME},"tags":{{"entity_id":"a"}},"fields":{{{fields}}}}}"#)
}

fn fault_words(body: &[u8]) -> Vec<String> {
    match parse(body) {
        Err(BatchRefusal::Faults(faults)) => faults.iter().map(words).collect(),
        other => panic!("{other:?}"),
    }
}

/// Returns a batch without the parts that only tell how it was written.
fn content(mut batch: Batch) -> Batch {
    batch.line_count = 0;
    batch.new_series.forget_raw_keys();
    batch
}

#[test]
fn each_line_that_is_no_record_is_named() {
    let sound = record(r#""x":1"#);
    let split = sound.replacen(',', ",\n", 1);
    let lines = [
        &sound,
        "{",
        "",
        "[]",
        " \t\r",
        "5",
        "nul",
        &format!("{sound},{sound}"),
        &format!("{sound} {{}}"),
        &format!("  {sound} \t\r"),
        &split,
        &record(r#""x":NaN"#),
        &record(r#""x":[]"#),
    ];
    let expected = [
        "json_invalid 1",
        "model_attributes_type 2",
        "model_attributes_type 3",
        "json_invalid 4",
        "json_invalid 5",
        "json_invalid 6",
        "json_invalid 8",
        "json_invalid 9",
        "json_invalid 10",
        "field_value_type 11.fields.x",
    ];
    assert_eq!(fault_words(lines.join("\n").as_bytes()), expected);
}

#[test]
fn the_first_fault_of_each_record_is_given() {
    let text = "{\n".repeat(999) + &record(r#""x":[],"y":[]"#);
    let found = fault_words(text.as_bytes());
    assert_eq!((found.len(), &*found[999]), (1_000, "field_value_type 999.fields.x"));
}

#[test]
fn bytes_that_are_no_text_cost_their_line_alone() {
    let sound = record(r#""x":1"#);
    let body = [sound.as_bytes(), b"\n{\"a\":\"\xff\xff\"}\n\xff\n", sound.as_bytes()].concat();
    assert_eq!(fault_words(&body), ["json_invalid 1", "json_invalid 2"]);
}

#[test]
fn a_record_of_two_lines_is_none_whatever_is_known() {
    let mut names = RawKeyCache::default();
    let limits = WriteLimits::default();
    let sound = record(r#""x":1"#);
    let split = sound.replace(r#"{"entity_id""#, "{\n\"entity_id\"");
    let array = format!("[{split}]");
    let context = ParseContext::new(&names, &limits, "acme", INGEST_NS);
    let batch = parse_json(array.as_bytes(), context).unwrap();
    names.insert(batch.new_series.get(0).unwrap().raw_key, 0);
    let body = format!("{sound}\n{split}");
    let refused =
        parse_json_lines(body.as_bytes(), ParseContext::new(&names, &limits, "acme", INGEST_NS));
    assert!(matches!(refused, Err(BatchRefusal::Faults(faults)) if faults.len() == 2));
}

#[test]
fn fields_in_another_order_stand_on_one_line_too() {
    let records = [r#""x":1,"y":2"#, r#""y":2, "x":1"#, r#""x":1"#].map(record).join("\n");
    assert_eq!(parse(records.as_bytes()).unwrap().accepted_count, 3);
    let split = [r#""x":1,"y":2"#, "\"y\":2,\n\"x\":1"].map(record).join("\n");
    assert_eq!(fault_words(split.as_bytes()), ["json_invalid 1", "json_invalid 2"]);
}

#[test]
fn lines_are_counted_with_those_that_hold_nothing() {
    let sound = record(r#""x":1"#);
    for (body, lines) in [
        (String::new(), 0),
        ("\n\n".to_owned(), 2),
        (sound.clone(), 1),
        (format!("\u{feff}\n{sound}\r\n \n{sound}\n"), 4),
        (format!("{sound}\n{sound}\n "), 3),
    ] {
        assert_eq!(parse(body.as_bytes()).unwrap().line_count, lines, "{body}");
    }
}

#[test]
fn too_many_are_refused() {
    let limits = WriteLimits { batch_records_max: 2, ..WriteLimits::default() };
    let names = RawKeyCache::default();
    let refused =
        parse_json_lines(b"{}\n{}\n{}", ParseContext::new(&names, &limits, "acme", INGEST_NS));
    assert_eq!(refused, Err(BatchRefusal::TooManyRecords { received: 3, max: 2 }));
}

#[test]
fn records_stand_where_they_begin() {
    let body = b"\xef\xbb\xbf{}\r\n\n  x y\n\xff\n7";
    assert_eq!(json_records(body), [(3, 5, 0), (10, 13, 2), (14, 15, 3), (16, 17, 4)]);
}

proptest! {
    #[test]
    fn lines_mean_what_an_array_of_them_means(
        records in prop::collection::vec(("[ab]", 0_i32..3, "[a-c]", "(1|-2\\.5e3|true|\"t\")"), 1..60),
        ends in prop::sample::select(vec!["\n", "\r\n", "\n\n", " \n"]),
    ) {
        let records: Vec<String> = records.iter().map(|(measurement, entity, name, value)| {
            let value = if name == "a" { value } else { "7" };
            format!(
                r#"{{"measurement":"{measurement}",{TIME},"tags":{{"entity_id":"{entity}"}},"fields":{{"{name}":{value}}}}}"#
            )
        }).collect();
        let (names, limits) = (RawKeyCache::default(), WriteLimits::default());
        let array = format!("[{}]", records.join(","));
        let context = ParseContext::new(&names, &limits, "acme", INGEST_NS);
        let expected = parse_json(array.as_bytes(), context);
        let found = parse(records.join(ends).as_bytes());
        prop_assert_eq!(found.map(content), expected.map(content));
    }
}
