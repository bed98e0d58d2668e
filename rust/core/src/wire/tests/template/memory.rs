//! Memory that the columns of a batch take.

use super::json::json_array;
use super::*;
use crate::model::time::write_rfc3339;
use crate::wire::tests::messages::{Record, Sent, encode};

/// Returns the capacity of the columns of a batch, in values and in rows of values.
fn room(batch: &Batch) -> usize {
    let columns = batch.tables.iter().flat_map(|table| &table.columns);
    columns
        .map(|column| {
            let rows = match &column.rows {
                RowSet::All => 0,
                RowSet::Some(rows) => rows.capacity(),
            };
            rows + match &column.values {
                Values::Float(values) => values.capacity(),
                Values::Bool(values) => values.capacity(),
                Values::Text(values) => values.capacity(),
            }
        })
        .sum()
}

/// Sends one record of 4,096 fields among 999 records of one field. Then sends records of which no
/// two have a field in common.
#[test]
fn a_batch_takes_memory_by_its_values_and_not_by_rows_times_columns() {
    let fields = |from: u32, count: u32| {
        (from..from + count).map(|field| (format!("f{field}"), Sent::Number(1.5))).collect()
    };
    let record = |fields: Vec<(String, Sent)>| Record {
        measurement: "link".to_owned(),
        time_ns: NOW_NS,
        tags: vec![("entity_id".to_owned(), "a".to_owned())],
        fields,
    };
    let wide_first = (0..1_000).map(|at| fields(0, if at == 0 { 4_096 } else { 1 })).collect();
    let wide_last = (0..1_000).map(|at| fields(0, if at == 999 { 4_096 } else { 1 })).collect();
    let disjoint = (0..1_000).map(|at| fields(at * 20, 20)).collect();
    for records in [wide_first, wide_last, disjoint] {
        let records: Vec<Vec<(String, Sent)>> = records;
        let value_count: usize = records.iter().map(Vec::len).sum();
        let records: Vec<_> = records.into_iter().map(record).collect();
        let texts: Vec<_> = records.iter().map(json).collect();
        let texts: Vec<_> = texts.iter().map(String::as_bytes).collect();
        let in_lines: Vec<_> = records.iter().map(line).collect();
        for (format, body) in [
            (Format::Json, json_array(&texts)),
            (Format::Protobuf, encode(&records)),
            (LINES, in_lines.concat().into_bytes()),
        ] {
            let batch = parse(format, &body, &RawKeyCache::default()).unwrap();
            let stored: usize =
                batch.tables[0].columns.iter().map(|column| column.values.len()).sum();
            assert_eq!(stored, value_count);
            assert!(room(&batch) <= 12 * value_count, "N3: {} of {value_count}", room(&batch));
        }
    }
}

fn line(record: &Record) -> String {
    let fields: Vec<_> = record.fields.iter().map(|(name, _)| format!("{name}=1.5")).collect();
    format!("link,entity_id=a {} {}\n", fields.join(","), record.time_ns)
}

fn json(record: &Record) -> String {
    let mut time = Vec::new();
    write_rfc3339(&mut time, record.time_ns);
    let fields: Vec<_> = record.fields.iter().map(|(name, _)| format!(r#""{name}":1.5"#)).collect();
    format!(
        r#"{{"measurement":"link","time":"{}","tags":{{"entity_id":"a"}},"fields":{{{}}}}}"#,
        String::from_utf8(time).unwrap(),
        fields.join(","),
    )
}
