//! Rows mean the same as equal records in JSON, both if they are read quickly and by the rules.

use std::fmt::Write;

use proptest::prelude::*;

use super::{NOW_NS, field, header, parse, tag, time};
use crate::model::batch::{Batch, FieldType, RowSet, Values};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::csv::CsvColumns;
use crate::wire::{ParseContext, parse_json};

/// Time, entity, site, number, flag and text of a row, and how its cells are written.
type Row = (i64, usize, Option<String>, Option<f64>, Option<bool>, Option<String>, bool);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = || prop::option::of("[a-z,\"\n\r é]{0,6}");
    let number = prop::option::of(prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()),
        (-99_999_i32..99_999).prop_map(|value| f64::from(value) / 100.0),
    ]);
    let row = (
        0_i64..2_000_000_000,
        0_usize..4,
        text(),
        number,
        any::<Option<bool>>(),
        text(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(row, 0..40)
}

fn columns() -> CsvColumns {
    let (number, flag, text) = (FieldType::Float, FieldType::Bool, FieldType::Text);
    let mut header = header(vec![
        time(),
        tag("entity_id"),
        tag("site"),
        field("x", Some(number)),
        field("up", Some(flag)),
        field("note", Some(text)),
    ]);
    header.time_unit_ns = Some(1_000_000_000);
    header.fixed_tags = vec![("zone".to_owned(), "z".to_owned())];
    header
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns a cell, in quotes if it needs them or if `all` cells have them.
fn cell(text: Option<&str>, all: bool) -> String {
    match text {
        None => String::new(),
        Some(text) if all || text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            quoted(text)
        }
        Some(text) => text.to_owned(),
    }
}

fn csv(rows: &[Row]) -> String {
    let mut out = String::new();
    for (seconds, entity, site, number, flag, note, all) in rows {
        let number = number.map(|number| number.to_string());
        let cells = [
            seconds.to_string(),
            cell(Some(&format!("l-{entity}")), *all),
            cell(site.as_deref(), *all),
            cell(number.as_deref(), *all),
            flag.map(|flag| flag.to_string()).unwrap_or_default(),
            cell(note.as_deref(), *all),
        ];
        writeln!(out, "{}", cells.join(",")).unwrap();
    }
    out
}

fn json(rows: &[Row]) -> String {
    let records = rows.iter().map(|(seconds, entity, site, number, flag, note, _)| {
        let mut time = Vec::new();
        crate::model::time::write_rfc3339(&mut time, seconds * 1_000_000_000);
        let time = String::from_utf8(time).unwrap();
        let site = site.as_ref().map(|site| format!(",\"site\":{site:?}")).unwrap_or_default();
        let fields = [
            number.map(|number| format!("\"x\":{number:e}")),
            flag.map(|flag| format!("\"up\":{flag}")),
            note.as_ref().map(|note| format!("\"note\":{note:?}")),
        ];
        let fields: Vec<_> = fields.into_iter().flatten().collect();
        format!(
            "{{\"measurement\":\"link\",\"time\":\"{time}\",\"tags\":{{\"entity_id\":\"l-{entity}\",\
             \"zone\":\"z\"{site}}},\"fields\":{{{}}}}}",
            fields.join(",")
        )
    });
    format!("[{}]", records.collect::<Vec<_>>().join(","))
}

/// Returns name of the series, time, and values by field for each row, in the order of the rows.
fn view(batch: &Batch) -> Vec<String> {
    let mut seen = Vec::new();
    for table in &batch.tables {
        for row in 0..table.row_count() {
            let series = (table.series[row] - crate::model::batch::NEW_SERIES_BASE) as usize;
            let mut cells: Vec<String> = Vec::new();
            for column in &table.columns {
                let name = &batch.fields[column.field as usize].name;
                let at = match &column.rows {
                    RowSet::All => Some(row),
                    RowSet::Some(rows) => rows.iter().position(|other| *other as usize == row),
                };
                let Some(at) = at else { continue };
                cells.push(match &column.values {
                    Values::Float(values) => format!("{name}={:x}", values[at].to_bits()),
                    Values::Bool(values) => format!("{name}={}", values[at]),
                    Values::Text(values) => format!("{name}={:?}", values[at]),
                });
            }
            cells.sort();
            let name = batch.new_series.get(series).unwrap().name;
            seen.push(format!("{name:?} {} {cells:?}", table.times_ns[row]));
        }
    }
    seen
}

proptest! {
    #[test]
    fn rows_mean_what_the_same_records_mean_in_json(rows in rows()) {
        let ours = parse(&mut columns(), csv(&rows).as_bytes()).unwrap();
        let names = RawKeyCache::default();
        let limits = WriteLimits::default();
        let document = json(&rows);
        let context = ParseContext::new(&names, &limits, "acme", NOW_NS);
        let theirs = parse_json(document.as_bytes(), context).unwrap();
        prop_assert_eq!(&ours.rejected_indices, &theirs.rejected_indices);
        prop_assert_eq!(ours.accepted_count, theirs.accepted_count);
        prop_assert_eq!(view(&ours), view(&theirs));
        prop_assert_eq!(ours.line_count, csv(&rows).matches('\n').count());
    }

    #[test]
    fn rows_read_quickly_mean_what_the_rules_say(rows in rows()) {
        // Quotes leave a row to the rules.
        let mut all_quoted = rows.clone();
        for row in &mut all_quoted {
            row.6 = true;
        }
        let quick = parse(&mut columns(), csv(&rows).as_bytes()).unwrap();
        let slow = parse(&mut columns(), csv(&all_quoted).as_bytes()).unwrap();
        prop_assert_eq!(quick, slow);
    }
}
