//! The rules by clause, and the fast paths against slow ones.

mod faults;
mod lines;
mod model;
mod rules;
mod syntax;

use crate::model::batch::{Batch, ParseResult, Values};
use crate::model::fault::{BatchRefusal, Fault, FaultCode, LocationStep};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::{SECOND_NS, YEAR_2000_NS};
use crate::wire::ParseContext;

/// 2026-01-31T12:00:00Z.
const INGEST_NS: i64 = YEAR_2000_NS + 823_176_000 * SECOND_NS;

const TIME: &str = r#""time":"2026-01-31T11:00:00Z""#;

fn parse_with(names: &RawKeyCache, body: &[u8]) -> ParseResult {
    let result = super::parse_json(
        body,
        ParseContext::new(names, &WriteLimits::default(), "acme", INGEST_NS),
    );
    if let Ok(batch) = &result {
        check_batch(batch);
    }
    result
}

fn parse(body: &str) -> ParseResult {
    parse_with(&RawKeyCache::default(), body.as_bytes())
}

fn accepted(body: &str) -> Batch {
    parse(body).unwrap_or_else(|refusal| panic!("{refusal:?}: {body}"))
}

fn faults(body: &str) -> Vec<Fault> {
    match parse(body) {
        Err(BatchRefusal::Faults(faults)) => faults,
        other => panic!("{other:?}: {body}"),
    }
}

/// Returns a fault in words: its code and its location. Example: `missing 3.time`.
fn words(fault: &Fault) -> String {
    let mut words = fault.code.as_str().to_owned();
    for (at, step) in fault.loc.iter().enumerate() {
        words.push(if at == 0 { ' ' } else { '.' });
        match step {
            LocationStep::Index(index) => words += &index.to_string(),
            LocationStep::Key(key) => words += key,
        }
    }
    words
}

fn fault_words(body: &str) -> Vec<String> {
    faults(body).iter().map(words).collect()
}

fn is_json_invalid(result: &ParseResult) -> bool {
    matches!(result, Err(BatchRefusal::Faults(faults)) if faults[0].code == FaultCode::JsonInvalid)
}

/// Puts every `step`-th of a batch's new series into a cache, numbered from 0.
fn cache_of(batch: &Batch, step: usize) -> RawKeyCache {
    let mut names = RawKeyCache::default();
    for (series, new) in (0..).zip(batch.new_series.iter().step_by(step)) {
        names.insert(new.raw_key, series);
    }
    names
}

/// Checks the promises of every batch.
fn check_batch(batch: &Batch) {
    use crate::model::batch::RowSet;
    assert_eq!(batch.tables.len(), batch.measurements.len());
    let row_count: usize = batch.tables.iter().map(crate::model::batch::Table::row_count).sum();
    assert_eq!(row_count, batch.accepted_count as usize);
    assert!(batch.rejected_indices.is_sorted_by(|a, b| a < b));
    assert_eq!(
        batch.fields.len(),
        batch.tables.iter().map(|table| table.columns.len()).sum::<usize>()
    );
    for (table_at, table) in batch.tables.iter().enumerate() {
        assert_eq!(table.series.len(), table.row_count());
        for column in &table.columns {
            let field = &batch.fields[column.field as usize];
            assert_eq!(field.table as usize, table_at);
            assert_eq!(field.field_type, column.values.field_type());
            match &column.rows {
                RowSet::All => assert_eq!(column.values.len(), table.row_count()),
                RowSet::Some(rows) => {
                    assert_eq!(column.values.len(), rows.len());
                    assert!(rows.is_sorted_by(|a, b| a < b));
                    assert!(rows.iter().all(|&row| (row as usize) < table.row_count()));
                }
            }
            if let Values::Float(values) = &column.values {
                assert!(values.iter().all(|value| value.is_finite()));
            }
        }
    }
}

/// Returns a record with these members in addition to its measurement and time.
fn record(members: &str) -> String {
    format!(r#"{{"measurement":"link",{TIME},{members}}}"#)
}

fn fields(members: &str) -> String {
    record(&format!(r#""fields":{{{members}}}"#))
}

fn tags(members: &str) -> String {
    record(&format!(r#""tags":{{{members}}},"fields":{{"a":1}}"#))
}

fn floats(batch: &Batch, column: usize) -> &[f64] {
    match &batch.tables[0].columns[column].values {
        Values::Float(values) => values,
        other => panic!("{other:?}"),
    }
}
