//! Rows that are refused or rejected, and the positions of records.

use super::{NOW_NS, TIME, field, header, parse, tag, time};
use crate::model::batch::{FieldType, Values};
use crate::model::fault::{BatchRefusal, FaultCode, LocationStep};
use crate::wire::csv::{CsvColumns, csv_records};

fn columns() -> CsvColumns {
    let number = Some(FieldType::Float);
    header(vec![time(), tag("entity_id"), field("x", number), field("note", Some(FieldType::Text))])
}

/// Returns codes and locations of the faults of `body`.
fn faults(header: &mut CsvColumns, body: &[u8]) -> Vec<(FaultCode, String)> {
    let Err(BatchRefusal::Faults(faults)) = parse(header, body) else { panic!("no faults") };
    let step = |step: &LocationStep| match step {
        LocationStep::Index(index) => index.to_string(),
        LocationStep::Key(key) => key.clone(),
    };
    let path = |loc: &[LocationStep]| loc.iter().map(step).collect::<Vec<_>>().join(".");
    faults.iter().map(|fault| (fault.code, path(&fault.loc))).collect()
}

#[test]
fn every_faulty_row_is_named_with_its_first_fault() {
    let rows = [
        format!("{TIME},a,1,fine"),
        format!("{TIME},a,1"),
        format!("{TIME},a,1,fine,more"),
        format!("{TIME},a,x,fine"),
        format!("{TIME},a,1e999,fine"),
        "soon,a,1,fine".to_owned(),
        ",a,1,fine".to_owned(),
        format!("{TIME},a,1,\"cut\" off"),
        format!("{TIME},a,1,\"open"),
        format!("{TIME},a,\"\",fine"),
    ];
    let expected = [
        (FaultCode::RecordType, "1"),
        (FaultCode::RecordType, "2"),
        (FaultCode::FieldValueType, "3.cell.2"),
        (FaultCode::FiniteNumber, "4.cell.2"),
        (FaultCode::DatetimeParsing, "5.time"),
        (FaultCode::DatetimeType, "6.time"),
        (FaultCode::LineInvalid, "7"),
        (FaultCode::FieldValueType, "9.cell.2"),
    ];
    // The quotes of one row are closed by the quotes of the next row.
    let found = faults(&mut columns(), rows.join("\n").as_bytes());
    let mut found: Vec<_> = found.iter().map(|(code, path)| (*code, path.as_str())).collect();
    found.retain(|(_, path)| *path != "8");
    assert_eq!(found, expected);
}

#[test]
fn bytes_that_are_no_text_cost_their_row_alone() {
    let start = format!("{TIME},a,1,");
    let body = [start.as_bytes(), b"\xe9t\xe9\n", start.as_bytes(), b"ok\n"];
    let expected = vec![(FaultCode::LineInvalid, "0".to_owned())];
    assert_eq!(faults(&mut columns(), &body.concat()), expected);
}

#[test]
fn rows_without_fields_and_early_ones_are_rejected_alone() {
    let body = format!("{TIME},a,,\n1999-12-31,a,1,\n{TIME},a,nan,\n\n{TIME},a,1,\n");
    let batch = parse(&mut columns(), body.as_bytes()).unwrap();
    assert_eq!((batch.accepted_count, batch.rejected_indices), (1, vec![0, 1, 2]));
    assert_eq!(batch.line_count, 5);
}

#[test]
fn later_times_become_the_instant_of_the_batch() {
    let body = format!("2100-01-01,a,1,\n{TIME},a,2,\n");
    let batch = parse(&mut columns(), body.as_bytes()).unwrap();
    assert_eq!((batch.clamped_count, batch.tables[0].times_ns[0]), (1, NOW_NS));
}

#[test]
fn a_column_has_the_type_of_its_first_cell_for_ever() {
    let mut header = header(vec![time(), field("a", None), field("b", None), field("c", None)]);
    let batch = parse(&mut header, format!("{TIME},,TRUE,\n{TIME},1e2,,x\n").as_bytes()).unwrap();
    let values: Vec<_> = batch.tables[0].columns.iter().map(|column| &column.values).collect();
    let text = Values::Text(vec!["x".into()]);
    assert_eq!(values, [&Values::Bool(vec![true]), &Values::Float(vec![100.0]), &text]);
    let found = faults(&mut header, format!("{TIME},true,1,1\n").as_bytes());
    assert_eq!(found, [(FaultCode::FieldValueType, "0.cell.1".to_owned())]);
}

#[test]
fn a_field_of_two_types_is_a_conflict_as_in_json() {
    let (number, text) = (Some(FieldType::Float), Some(FieldType::Text));
    let mut header = header(vec![time(), field("a", number), field("a", text)]);
    let batch = parse(&mut header, format!("{TIME},1,\n{TIME},,x\n").as_bytes()).unwrap();
    assert_eq!(batch.conflict.unwrap().field, "a");
    let twice = faults(&mut header, format!("{TIME},1,x\n").as_bytes());
    assert_eq!(twice, [(FaultCode::DuplicateKey, "0.fields.a".to_owned())]);
}

#[test]
fn times_in_a_unit_are_whole_numbers() {
    let mut header = header(vec![time(), field("a", Some(FieldType::Float))]);
    header.time_unit_ns = Some(1_000_000_000);
    let batch = parse(&mut header, b"1700000000,1\n+1700000001,2\n").unwrap();
    assert_eq!(batch.tables[0].times_ns, [1_700_000_000_000_000_000, 1_700_000_001_000_000_000]);
    let found = faults(&mut header, b"1.5,1\n,1\n9223372036854775807,1\n");
    let not_whole = |row: usize| (FaultCode::IntParsing, format!("{row}.cell.0"));
    let beyond = (FaultCode::DatetimeParsing, "2.time".to_owned());
    assert_eq!(found, [not_whole(0), not_whole(1), beyond]);
}

#[test]
fn rows_stand_where_they_begin() {
    let body = b"a,b\r\n\n\"c\n\n\",\"d\"\"\"\n\r\ne";
    assert_eq!(csv_records(body), (vec![(0, 3, 0), (6, 17, 2), (20, 21, 6)], None));
    let open = b"a,b\nc,\"d\ne,f\n";
    assert_eq!(csv_records(open).1, Some(4));
    assert_eq!(csv_records(b"a,\"b\"c\nd\n"), (vec![(0, 6, 0), (7, 8, 1)], None));
}
