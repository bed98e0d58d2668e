//! A record means the same if it is read by the rules or by a template.
//!
//! Records with all kinds of differences come first in one body, when no template exists yet. In
//! another body they come last, after two similar records. Both bodies must have the same answer,
//! with known series and with new series.

mod json;
mod lines;
mod memory;
mod protobuf;

use crate::model::batch::{Batch, NEW_SERIES_BASE, ParseResult, RowSet, Values};
use crate::model::fault::{BatchRefusal, FaultCode};
use crate::model::limits::WriteLimits;
use crate::model::names::SeriesName;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::{SECOND_NS, YEAR_2000_NS};
use crate::wire::{Format, ParseContext, Precision};

const NOW_NS: i64 = YEAR_2000_NS + 823_176_000 * SECOND_NS;

const LINES: Format = Format::Lines(Precision::Nanoseconds);

/// Joins records to a body.
type Join = fn(&[&[u8]]) -> Vec<u8>;

fn parse(format: Format, body: &[u8], names: &RawKeyCache) -> ParseResult {
    format.parse(body, ParseContext::new(names, &WriteLimits::default(), "acme", NOW_NS))
}

/// Returns the content of an answer without the positions in the batch. Known series look like new
/// series.
fn meaning(answer: ParseResult, known: &[SeriesName]) -> Vec<String> {
    let batch = match answer {
        Ok(batch) => batch,
        Err(BatchRefusal::Faults(faults)) if faults[0].code == FaultCode::JsonInvalid => {
            return vec!["no JSON".to_owned()];
        }
        Err(BatchRefusal::Faults(mut faults)) => {
            for fault in &mut faults {
                fault.loc.remove(0);
            }
            let mut words: Vec<_> = faults.iter().map(|fault| format!("{fault:?}")).collect();
            words.sort();
            return words;
        }
        Err(refusal) => return vec![format!("{refusal:?}")],
    };
    if let Some(conflict) = batch.conflict {
        return vec![format!("conflict: {}", conflict.field)];
    }
    let counts = (batch.accepted_count, batch.rejected_indices.len(), batch.clamped_count);
    let mut words = rows(&batch, known);
    words.sort();
    words.push(format!("{counts:?}"));
    words
}

fn rows(batch: &Batch, known: &[SeriesName]) -> Vec<String> {
    let mut rows = Vec::new();
    for table in &batch.tables {
        for row in 0..table.row_count() {
            let name = match table.series[row].checked_sub(NEW_SERIES_BASE) {
                Some(new) => &batch.new_series.get(new as usize).unwrap().name.to_name(),
                None => &known[table.series[row] as usize],
            };
            let cells = table.columns.iter().filter_map(|column| {
                let at = match &column.rows {
                    RowSet::All => row,
                    RowSet::Some(rows) => rows.iter().position(|some| *some as usize == row)?,
                };
                let value = match &column.values {
                    Values::Float(values) => format!("{:?}", values[at]),
                    Values::Bool(values) => format!("{:?}", values[at]),
                    Values::Text(values) => format!("{:?}", values[at]),
                };
                Some(format!("{}={value}", batch.fields[column.field as usize].name))
            });
            let mut cells: Vec<_> = cells.collect();
            cells.sort();
            rows.push(format!("{name:?} {} {cells:?}", table.times_ns[row]));
        }
    }
    rows
}

/// Checks each of `changed` after `like`.
fn check(format: Format, join: Join, like: [&[u8]; 3], changed: &[Vec<u8>]) {
    let all = parse(format, &join(&like), &RawKeyCache::default()).unwrap();
    assert_eq!((all.accepted_count, all.conflict), (3, None));
    let known: Vec<_> = all.new_series.iter().map(|new| new.name.to_name()).collect();
    let mut warm = RawKeyCache::default();
    for (series, new) in (0..).zip(all.new_series.iter()) {
        warm.insert(new.raw_key, series);
    }
    let mut accepted_count = 0;
    for record in changed {
        for names in [&RawKeyCache::default(), &warm] {
            let first = parse(format, &join(&[record, like[0], like[1]]), names);
            let last = parse(format, &join(&[like[0], like[1], record]), names);
            accepted_count += usize::from(last.is_ok());
            let (first, last) = (meaning(first, &known), meaning(last, &known));
            assert_eq!(first, last, "{}", String::from_utf8_lossy(record));
        }
    }
    assert!(accepted_count > changed.len() / 20, "{accepted_count} of {}", changed.len());
}

/// Returns copies of `record`. Each has a byte that is replaced by, followed by or preceded by one
/// of `bytes`, or left out, or the last byte.
fn byte_changes(record: &[u8], bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut changed = vec![record.to_vec()];
    for at in 0..record.len() {
        let (before, after) = (&record[..at], &record[at + 1..]);
        changed.push(before.to_vec());
        changed.push([before, after].concat());
        for byte in bytes {
            changed.push([before, &[*byte], after].concat());
            changed.push([before, &[*byte], &record[at..]].concat());
        }
    }
    changed
}
