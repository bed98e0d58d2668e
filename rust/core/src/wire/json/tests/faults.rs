//! Faults of a batch: their codes, locations, order and number.

use super::*;
use crate::model::limits::FAULTS_MAX;

/// Rule, body and faults.
type Case = (&'static str, String, &'static [&'static str]);

/// Documents that are not JSON, not an array, or contain an invalid number.
fn document_cases() -> Vec<Case> {
    vec![
        ("C2", String::new(), &["json_invalid 0"]),
        ("C2", " [1,]".into(), &["json_invalid 4"]),
        ("C2", "[1".into(), &["json_invalid 2"]),
        ("C2", "[] x".into(), &["json_invalid 3"]),
        ("C2", "[01]".into(), &["json_invalid 2"]),
        ("C3", r#"{"records":[]}"#.into(), &["list_type"]),
        ("C3", "null".into(), &["list_type"]),
        ("C3", "\"a\"".into(), &["list_type"]),
        ("C3", "1".into(), &["list_type"]),
        ("C4", format!("[{}]", fields("\"a\":NaN")), &["json_invalid 67"]),
        ("C4", "[Infinity]".into(), &["json_invalid 1"]),
        ("C4", "[-Infinity]".into(), &["json_invalid 2"]),
        ("C5", format!("[{}]", fields("\"a\":1e999")), &["finite_number 0.fields.a"]),
        ("C5", format!("[{}]", fields("\"a\":-1.8e308")), &["finite_number 0.fields.a"]),
        (
            "C6",
            format!("[{}]", fields(&format!("\"a\":1{:0>400}", 0))),
            &["finite_number 0.fields.a"],
        ),
        ("C10", "[\"\\ud800\"]".into(), &["json_invalid 3"]),
    ]
}

/// Records that break a rule, and their faults.
fn record_cases() -> Vec<Case> {
    let time =
        |value: &str| format!(r#"[{{"measurement":"link","time":{value},"fields":{{"a":1}}}}]"#);
    let measurement =
        |value: &str| format!(r#"[{{"measurement":{value},{TIME},"fields":{{"a":1}}}}]"#);
    vec![
        (
            "C16",
            format!("[{}]", record("\"tags\":null,\"fields\":{\"a\":1}")),
            &["dict_type 0.tags"],
        ),
        ("C16", format!("[{}]", record("\"fields\":null")), &["dict_type 0.fields"]),
        ("C16", format!("[{}]", record("\"fields\":[]")), &["dict_type 0.fields"]),
        ("C18", format!("[{}]", fields("\"a\":null")), &["field_value_type 0.fields.a"]),
        (
            "C18",
            format!("[{}]", fields("\"a\":[1],\"b\":{\"c\":2},\"d\":1")),
            &["field_value_type 0.fields.a", "field_value_type 0.fields.b"],
        ),
        (
            "C19",
            format!("[{}]", tags("\"a\":1,\"b\":true,\"c\":null,\"d\":\"x\",\"e\":1e999")),
            &[
                "string_type 0.tags.a",
                "string_type 0.tags.b",
                "string_type 0.tags.c",
                "string_type 0.tags.e",
            ],
        ),
        ("C24", format!("[{}]", fields("\"\":1")), &["string_too_short 0.fields."]),
        (
            "record",
            "[1,null,[],\"a\"]".into(),
            &[
                "model_attributes_type 0",
                "model_attributes_type 1",
                "model_attributes_type 2",
                "model_attributes_type 3",
            ],
        ),
        ("record", "[{}]".into(), &["missing 0.measurement", "missing 0.time"]),
        ("record", measurement("\"\""), &["string_too_short 0.measurement"]),
        ("record", measurement("1e999"), &["string_type 0.measurement"]),
        ("record", measurement("null"), &["string_type 0.measurement"]),
        ("D2", time("1769860800"), &["datetime_type 0.time"]),
        ("D2", time("null"), &["datetime_type 0.time"]),
        ("D2", time("\"1769860800\""), &["datetime_from_date_parsing 0.time"]),
        ("D5", time("\"2016-12-31T23:59:60Z\""), &["datetime_from_date_parsing 0.time"]),
    ]
}

#[test]
fn faults_and_where_they_are() {
    let cases = [document_cases(), record_cases()].concat();
    for (clause, body, expected) in &cases {
        assert_eq!(&fault_words(body), expected, "{clause}: {body}");
    }
    let duplicate = faults(&format!("[{}]", fields("\"a\":1,\"a\":1")));
    let reached: Vec<_> =
        cases.iter().flat_map(|(_, body, _)| faults(body)).chain(duplicate).collect();
    let of_others = [
        FaultCode::LineInvalid,
        FaultCode::IntParsing,
        FaultCode::IntParsingSize,
        FaultCode::NoFields,
        FaultCode::TimeTooEarly,
        FaultCode::TagsInvalid,
        FaultCode::FieldsInvalid,
        FaultCode::TypeConflict,
    ];
    for code in FaultCode::ALL.into_iter().filter(|code| !of_others.contains(code)) {
        assert!(reached.iter().any(|fault| fault.code == code), "no case for {code:?}");
    }
}

#[test]
fn duplicate_keys_are_compared_unescaped() {
    for (body, expected) in [
        (fields(r#""a":1,"b":2,"a":null"#), "0.fields.a"),
        (fields(r#""a":1,"\u0061":1"#), "0.fields.a"),
        (fields(r#""é":1,"\u00e9":1"#), "0.fields.é"),
        (tags(r#""a":"x","b":"y","a":"x""#), "0.tags.a"),
        (tags(r#""a":"x","\u0061":1"#), "0.tags.a"),
        (record(r#""fields":{"a":1},"measurement":1"#), "0.measurement"),
        (record(r#""fields":{"a":1},"m\u0065asurement":"link""#), "0.measurement"),
        (record(r#""fields":{"a":1},"fields":{"b":null}"#), "0.fields"),
        (record(r#""fields":{"a":1},"time":"x""#), "0.time"),
        (record(r#""fields":{"a":1},"tags":{},"tags":5"#), "0.tags"),
        (record(r#""fields":{"a":1},"x":1,"y":2,"x":3"#), "0.x"),
    ] {
        assert_eq!(fault_words(&format!("[{body}]")), [format!("duplicate_key {expected}")], "C8");
    }
    let both = fault_words(&format!("[{}]", fields(r#""a":null,"a":1"#)));
    assert_eq!(both, ["field_value_type 0.fields.a", "duplicate_key 0.fields.a"], "C8");
    // The record follows a record that fills the same columns in the same order.
    let known = fields(r#""a":1,"b":2,"c":3"#);
    for doubled in [r#""a":1,"b":2,"b":3"#, r#""b":1,"c":2,"a":3,"c":4"#, r#""c":1,"c":2"#] {
        let found = fault_words(&format!("[{known},{}]", fields(doubled)));
        assert_eq!(found.len(), 1, "C8");
        assert!(found[0].starts_with("duplicate_key 1.fields."), "C8: {found:?}");
    }
    let nested = record(r#""fields":{"a":1},"x":{"y":1,"y":2e999}"#);
    assert_eq!(accepted(&format!("[{nested}]")).accepted_count, 1, "nothing is kept of it");
    let many: Vec<_> = (0..50).map(|key| format!("\"{key}\":{key}")).collect();
    let many = many.join(",");
    assert_eq!(accepted(&format!("[{}]", fields(&many))).fields.len(), 50);
    let doubled = format!("[{}]", fields(&format!("{many},\"49\":0")));
    assert_eq!(fault_words(&doubled), ["duplicate_key 0.fields.49"], "C8");
}

#[test]
fn faults_stand_in_document_order_with_missing_keys_last() {
    let body = r#"[
        {"fields":{"a":null}, "tags":{"x":1}, "measurement":5},
        7,
        {"tags":{"y":2}, "fields":{"":1,"b":1e999}, "time":"never", "tags":{}}
    ]"#;
    assert_eq!(
        fault_words(body),
        [
            "field_value_type 0.fields.a",
            "string_type 0.tags.x",
            "string_type 0.measurement",
            "missing 0.time",
            "model_attributes_type 1",
            "string_type 2.tags.y",
            "string_too_short 2.fields.",
            "finite_number 2.fields.b",
            "datetime_from_date_parsing 2.time",
            "duplicate_key 2.tags",
            "missing 2.measurement",
        ]
    );
}

#[test]
fn faults_are_at_most_a_hundred() {
    let many = |count: usize, value: &str| {
        (0..count).map(|key| format!("\"k{key}\":{value}")).collect::<Vec<_>>().join(",")
    };
    // The tags come first in the document and are checked last.
    let body = format!(r#"[{{"tags":{{{}}},"fields":{{{}}}}}]"#, many(60, "1"), many(500, "null"));
    let faults = fault_words(&body);
    assert_eq!(faults.len(), FAULTS_MAX, "C1");
    assert_eq!(faults.iter().filter(|fault| fault.contains("tags")).count(), 60);
    assert_eq!(faults[99], "field_value_type 0.fields.k39");
    let records = format!("[{}]", vec!["1"; 300].join(","));
    assert_eq!(fault_words(&records).last().unwrap(), "model_attributes_type 99");
}
