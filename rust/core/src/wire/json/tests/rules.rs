//! The rules of a record, by clause of the contract.

use super::*;
use crate::model::batch::{CellPosition, FieldType, RowSet};
use crate::model::limits::JSON_DEPTH_MAX;

#[test]
fn earlier_stages_win() {
    let refused = |body: String| parse(&body).unwrap_err();
    let too_many_tags: Vec<_> = (0..65).map(|tag| format!("\"{tag}\":\"\"")).collect();
    let too_many_tags = tags(&too_many_tags.join(","));
    let in_tags = BatchRefusal::InvalidInput { field: "tags" };
    let bad_record = fields("\"a\":null");
    // Syntax comes first, an array before its count, count before schema, and schema before tags.
    let thousand_and_one = vec![bad_record.as_str(); 1_001].join(",");
    assert!(is_json_invalid(&parse(&format!("[{thousand_and_one}"))));
    assert_eq!(
        refused(format!("[{thousand_and_one}]")),
        BatchRefusal::TooManyRecords { received: 1_001, max: 1_000 },
        "C28"
    );
    assert_eq!(
        fault_words(&format!("[{too_many_tags},{bad_record}]")),
        ["field_value_type 1.fields.a"]
    );
    assert_eq!(refused(format!("[{too_many_tags}]")), in_tags, "C20");
    assert_eq!(refused(format!("[{}]", tags("\"\":\"x\""))), in_tags, "C22");
    // Tags come before the reasons to reject single records, also in a rejected record.
    for rejected in [
        too_many_tags.replace("2026", "1999"),
        too_many_tags.replace("\"fields\":{\"a\":1}", "\"fields\":{}"),
    ] {
        assert_eq!(refused(format!("[{rejected}]")), in_tags, "C20");
    }
    // Tags come before fields (also in a rejected record), and both come before types.
    let members = |count: usize| (0..count).map(|field| format!("\"{field}\":1"));
    let wide = |count| fields(&members(count).collect::<Vec<_>>().join(","));
    let in_fields = BatchRefusal::InvalidInput { field: "fields" };
    assert_eq!(accepted(&format!("[{}]", wide(4_096))).fields.len(), 4_096, "N1");
    assert_eq!(refused(format!("[{}]", wide(4_097))), in_fields, "N1");
    assert_eq!(refused(format!("[{}]", wide(4_097).replace("2026-", "1999-"))), in_fields, "N1");
    assert_eq!(refused(format!("[{},{too_many_tags}]", wide(4_097))), in_tags, "N1");
    assert_eq!(
        fault_words(&format!("[{},{bad_record}]", wide(4_097))),
        ["field_value_type 1.fields.a"]
    );
    let conflict = format!("{},{}", fields("\"a\":1"), fields("\"a\":true"));
    assert_eq!(refused(format!("[{conflict},{}]", wide(4_097))), in_fields, "N1");
    // Tags come before types.
    let conflict = format!("{},{}", fields("\"a\":1"), fields("\"a\":true"));
    assert_eq!(refused(format!("[{conflict},{too_many_tags}]")), in_tags);
    assert!(accepted(&format!("[{conflict}]")).conflict.is_some());
    let sixty_four: Vec<_> = (0..64).map(|tag| format!("\"{tag}\":\"\"")).collect();
    assert_eq!(accepted(&format!("[{}]", tags(&sixty_four.join(",")))).accepted_count, 1, "C20");
}

#[test]
fn what_is_accepted() {
    let batch = accepted("\u{feff} [ ] \n");
    assert_eq!(batch, Batch { ingest_ns: INGEST_NS, ..Batch::default() }, "C26");
    let body = format!(
        "[{}]",
        record(
            r#""tenant":1,"tags":{"b":"\ud83d\ude80","a\u0000":"","entity_id":"s1","tenant":"evil"},
            "fields":{" ":1,"t":"\u0000\"é","f":false}"#
        )
    );
    let batch = accepted(&body);
    let names = batch.new_series.get(0).unwrap().name;
    let tags: Vec<_> = names.tags().collect();
    assert_eq!(
        tags,
        [("a\0", ""), ("b", "🚀"), ("entity_id", "s1"), ("tenant", "acme")],
        "C11, C13, C15, C23"
    );
    let types: Vec<_> = batch.fields.iter().map(|field| field.field_type).collect();
    assert_eq!(types, [FieldType::Float, FieldType::Text, FieldType::Bool], "E2");
    assert_eq!(batch.tables[0].columns[1].values, Values::Text(vec!["\0\"é".into()]));
    assert_eq!(batch.measurements, ["link"]);
    let blank = accepted(&format!(r#"[{{"measurement":" ",{TIME},"fields":{{"a":1}}}}]"#));
    assert_eq!(blank.measurements, [" "], "C12");
    assert_eq!(blank.new_series.get(0).unwrap().name.tags().next(), None, "C30");
}

#[test]
fn numbers_are_the_nearest_doubles() {
    let numbers = [
        "-0.0",
        "-0",
        "0",
        "0.0",
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "9007199254740993",
        "123456789012345678901234567890",
        "0.1",
        "1E2",
        "1e+2",
        "100e-2",
        "0e99999999999999999999",
        "1e-99999999999999999999",
        "3.14159265358979323846264338327950288",
        "-29.9429",
        "1234567.1234567",
        "12345678.12345678",
        "1.00000000000000011102230246251565",
        "8.5",
        "85e-1",
        "0.000001",
        "4503599627370497.5",
        "-7.0e0",
        "1.5E-3",
    ];
    let members: Vec<_> =
        numbers.iter().enumerate().map(|(at, number)| format!("\"{at}\":{number}")).collect();
    // Read the record twice: the template of the first record reads the second.
    let one = record(&format!("\"tags\":{{}},\"fields\":{{{}}}", members.join(",")));
    let batch = accepted(&format!("[{one},{one}]"));
    for (at, number) in numbers.iter().enumerate() {
        let expected: f64 = number.parse().unwrap();
        for value in floats(&batch, at) {
            assert_eq!(value.to_bits(), expected.to_bits(), "C5 to C7: {number}");
        }
    }
}

#[test]
fn rejected_records_leave_no_trace() {
    let body = format!(
        "[{},{},{},{},{}]",
        record("\"fields\":{}"),
        record("\"x\":1"),
        fields("\"a\":true,\"old\":1")
            .replace("2026-01-31T11:00:00Z", "1999-12-31T23:59:59.999999999Z"),
        fields("\"a\":1").replace("2026-01-31T11:00:00Z", "2000-01-01T00:00:00Z"),
        fields("\"a\":1").replace("2026-01-31T11:00:00Z", "2000-01-01T00:00:00+14:00"),
    );
    let batch = accepted(&body);
    assert_eq!(batch.rejected_indices, [0, 1, 2, 4], "C17, D8");
    assert_eq!(batch.accepted_count, 1);
    assert_eq!((batch.fields.len(), batch.new_series.len()), (1, 1), "E5");
    assert_eq!(batch.conflict, None, "E5");
    assert_eq!(batch.tables[0].times_ns, [YEAR_2000_NS]);
    let all = accepted(&format!("[{}]", record("\"fields\":{}")));
    assert_eq!((all.accepted_count, all.rejected_indices), (0, vec![0]), "C27");
    assert!(all.tables.is_empty() && all.new_series.is_empty());
}

#[test]
fn future_times_become_the_ingest_time() {
    let at =
        |time: &str| record(r#""tags":{},"fields":{"a":1}"#).replace("2026-01-31T11:00:00Z", time);
    let body = format!(
        "[{},{},{},{},{}]",
        at("2026-01-31T12:00:00Z"),
        at("2026-01-31T12:00:00.000000001Z"),
        at("9999-12-31T00:00:00Z"),
        at("2026-01-31T11:59:59Z"),
        at("2030-01-01").replace("\"a\":1", ""),
    );
    let batch = accepted(&body);
    let expected = [INGEST_NS, INGEST_NS, INGEST_NS, INGEST_NS - SECOND_NS];
    assert_eq!(batch.tables[0].times_ns, expected, "D9 to D11");
    assert_eq!((batch.clamped_count, batch.rejected_indices), (2, vec![4]));
}

#[test]
fn the_first_conflict_is_named() {
    let body = format!(
        "[{},{},{},{}]",
        fields("\"a\":1,\"b\":\"x\"").replace("2026", "1999"),
        fields("\"a\":true,\"b\":1,\"c\":1"),
        fields("\"c\":2,\"b\":\"x\",\"a\":1"),
        fields("\"a\":\"x\""),
    );
    let batch = accepted(&body);
    let conflict = batch.conflict.unwrap();
    assert_eq!(conflict.field, "b", "E6");
    assert_eq!(conflict.at, CellPosition { record: 2, key: 1 }, "E3");
    let first: Vec<_> =
        batch.fields.iter().map(|field| (field.name.as_str(), field.first)).collect();
    let at = |key| CellPosition { record: 1, key };
    assert_eq!(first, [("a", at(0)), ("b", at(1)), ("c", at(2))]);
    // A type belongs to a field of a single measurement (E1).
    let elsewhere = fields("\"a\":true").replace("link", "satellite");
    assert_eq!(accepted(&format!("[{},{elsewhere}]", fields("\"a\":1"))).conflict, None, "E1");
}

#[test]
fn gaps_show_in_the_rows_of_a_column() {
    let body = format!(
        "[{},{},{},{}]",
        fields("\"a\":1,\"b\":2"),
        fields("\"b\":3,\"a\":4"),
        fields("\"c\":5,\"b\":6"),
        fields("\"b\":7"),
    );
    let batch = accepted(&body);
    let columns = &batch.tables[0].columns;
    assert_eq!(columns[0].rows, RowSet::Some(vec![0, 1]));
    assert_eq!(columns[1].rows, RowSet::All);
    assert_eq!(columns[2].rows, RowSet::Some(vec![2]));
    assert_eq!(
        (floats(&batch, 0), floats(&batch, 1)),
        (&[1.0, 4.0][..], &[2.0, 3.0, 6.0, 7.0][..])
    );
}

#[test]
fn equal_raw_tags_are_one_series() {
    let one = tags(r#""entity_id":"a}","x":"1""#);
    let other = tags(r#""entity_id":"b","x":"1""#);
    let body = format!("[{one},{other},{one},{}]", one.replace("link", "links"));
    let batch = accepted(&body);
    assert_eq!(batch.new_series.len(), 3);
    assert_eq!(batch.tables[0].series[0], batch.tables[0].series[2]);
    assert_eq!(batch.new_series.get(0).unwrap().name.entity_id(), Some("a}"));
    let names = cache_of(&batch, 1);
    let again = parse_with(&names, body.as_bytes()).unwrap();
    assert!(again.new_series.is_empty());
    assert_eq!(again.tables[0].series, [0, 1, 0]);
    assert_eq!(again.tables[1].series, [2]);
    // Tags before the measurement, and a record without tags.
    let swapped = format!(
        r#"[{{"tags":{{"entity_id":"b","x":"1"}},"fields":{{"a":1}},{TIME},"measurement":"link"}},{}]"#,
        fields("\"a\":1")
    );
    let batch = parse_with(&names, swapped.as_bytes()).unwrap();
    assert_eq!((batch.tables[0].series[0], batch.new_series.len()), (1, 1));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = nested(JSON_DEPTH_MAX);
    assert_eq!(fault_words(&deepest), ["model_attributes_type 0"], "C9");
    assert_eq!(fault_words(&nested(JSON_DEPTH_MAX + 1)), ["json_invalid 8"], "C9");
    let inside = |depth| record(&format!("\"x\":{},\"fields\":{{\"a\":1}}", nested(depth)));
    assert_eq!(accepted(&format!("[{}]", inside(JSON_DEPTH_MAX - 2))).accepted_count, 1, "C9");
    assert!(is_json_invalid(&parse(&format!("[{}]", inside(JSON_DEPTH_MAX - 1)))), "C9");
    for key in ["fields", "tags"] {
        let at = |depth| format!("[{}]", record(&format!("\"{key}\":{{\"a\":{}}}", nested(depth))));
        assert!(!is_json_invalid(&parse(&at(JSON_DEPTH_MAX - 3))), "C9");
        assert!(is_json_invalid(&parse(&at(JSON_DEPTH_MAX - 2))), "C9");
    }
    assert!(is_json_invalid(&parse(&"[".repeat(1_000_000))), "C9");
    assert!(is_json_invalid(&parse(&"{\"a\":".repeat(1_000_000))), "C9");
}
