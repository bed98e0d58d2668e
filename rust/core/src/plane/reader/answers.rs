//! A hash over everything that a scan answers. It does not depend on the segments and blocks in
//! which the rows are stored (`docs/format.md`, "Hash of answers").

use ring::digest::{SHA256, digest};

use super::Reader;
use super::scan::RowStream;
use crate::model::batch::FieldType;
use crate::model::column_name;
use crate::model::error::Result;
use crate::query::scan::{ScanColumn, ScanRequest, ScanSchema, ScanValues, TagMaps};

impl Reader {
    /// Returns the hash over everything that a scan answers if retention hides no row.
    pub(in crate::plane) fn answers_hash(&self) -> Result<u64> {
        let request =
            ScanRequest { start_ns: i64::MIN, end_ns: i64::MAX, ..ScanRequest::default() };
        hash_of(self.scan(&request, i64::MIN.into())?)
    }
}

/// Sums the hashes of all values of a stream. The order does not matter.
fn hash_of(mut stream: RowStream) -> Result<u64> {
    let keys = SchemaKeys::of(stream.schema());
    let (mut sum, mut rows, mut series) = (0_u64, Vec::new(), PreviousSeries::default());
    while let Some(batch) = stream.next_batch()? {
        let measurement = &keys.measurements[batch.measurement as usize];
        rows.clear();
        let mut times_ns = batch.times_ns.as_slice();
        for (run, length) in batch.tags.lengths.iter().enumerate() {
            let series = series.key_of(&batch.tags.maps, measurement, run);
            let (of_run, rest) = times_ns.split_at(*length);
            let hash = |time_ns: &i64| mixed(series.wrapping_add(mixed(time_ns.cast_unsigned())));
            rows.extend(of_run.iter().map(hash));
            times_ns = rest;
        }
        for (index, column) in &batch.columns {
            sum = sum.wrapping_add(hash_of_column(column, keys.fields[*index], &rows));
        }
    }
    Ok(sum)
}

/// Sums the hashes of the values of a column. `rows` has the hashes of the rows.
fn hash_of_column(column: &ScanColumn, field: u64, rows: &[u64]) -> u64 {
    let hash = |row: u64, value: u64| mixed(row ^ mixed(field.wrapping_add(value)));
    let sum = |sum: u64, hash: u64| sum.wrapping_add(hash);
    let is_set = |bits: &[u8], row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
    if let (None, ScanValues::Float(values)) = (&column.validity, &column.values) {
        // Most columns come here: without a branch the loop handles several values at once.
        return rows
            .iter()
            .zip(values)
            .map(|(row, value)| hash(*row, value.to_bits()))
            .fold(0, sum);
    }
    let mut texts = TextKeys::default();
    let has_value = |row: &usize| column.validity.as_ref().is_none_or(|bits| is_set(bits, *row));
    let mut value_of = |row: usize| match &column.values {
        ScanValues::Float(values) => values[row].to_bits(),
        ScanValues::Bool(values) => u64::from(is_set(values, row)),
        ScanValues::Text(values) => texts.key_of(values.bytes_of(row)),
    };
    let present = (0..rows.len()).filter(has_value);
    present.map(|row| hash(rows[row], value_of(row))).fold(0, sum)
}

/// Spreads each bit of a number over all bits of the result (the finalizer of `SplitMix64`).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the first eight bytes of a SHA-256 as a number, lowest byte first.
fn key_of(bytes: &[u8]) -> u64 {
    let hash = digest(&SHA256, bytes);
    hash.as_ref().iter().take(8).rev().fold(0, |key, byte| key << 8 | u64::from(*byte))
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    out.extend(u32::try_from(count).expect("names are short").to_le_bytes());
}

fn push_text(text: &[u8], out: &mut Vec<u8>) {
    push_count(text.len(), out);
    out.extend(text);
}

/// Numbers that stand for the names of a schema.
struct SchemaKeys {
    /// Encoded name of each measurement, with which the name of a series begins.
    measurements: Vec<Vec<u8>>,
    fields: Vec<u64>,
}

impl SchemaKeys {
    fn of(schema: &ScanSchema) -> Self {
        let encoded = |name: &String| {
            let mut bytes = Vec::new();
            push_text(name.as_bytes(), &mut bytes);
            bytes
        };
        let field_key = |(column, field_type): &(String, FieldType)| {
            let (field, _) = column_name::field_of(column);
            key_of(&[&[field_type.code()], field.as_bytes()].concat())
        };
        Self {
            measurements: schema.measurements.iter().map(encoded).collect(),
            fields: schema.columns.iter().map(field_key).collect(),
        }
    }
}

/// The series of the previous run: the first run of a batch often continues it.
#[derive(Default)]
struct PreviousSeries {
    name: Vec<u8>,
    key: u64,
    scratch: Vec<u8>,
}

impl PreviousSeries {
    /// Returns the key of the series of a run of rows.
    fn key_of(&mut self, tags: &TagMaps, measurement: &[u8], run: usize) -> u64 {
        let entries = tags.entries_of(run);
        self.scratch.clear();
        self.scratch.extend(measurement);
        push_count(entries.len(), &mut self.scratch);
        for entry in entries {
            push_text(tags.keys.bytes_of(entry), &mut self.scratch);
            push_text(tags.values.bytes_of(entry), &mut self.scratch);
        }
        if self.scratch != self.name {
            std::mem::swap(&mut self.scratch, &mut self.name);
            self.key = key_of(&self.name);
        }
        self.key
    }
}

/// The previous text and its key: texts of a column are often the same.
#[derive(Default)]
struct TextKeys {
    last: Option<(Vec<u8>, u64)>,
}

impl TextKeys {
    fn key_of(&mut self, text: &[u8]) -> u64 {
        match &self.last {
            Some((last, key)) if last == text => *key,
            _ => {
                let key = key_of(text);
                self.last = Some((text.to_vec(), key));
                key
            }
        }
    }
}
