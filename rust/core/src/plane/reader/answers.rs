//! A hash over everything that a scan answers. It does not depend on the segments and blocks in
//! which the rows are stored (`docs/format.md`, "Hash of answers").

use std::ops::Range;

use ring::digest::{SHA256, digest};

use super::Reader;
use super::scan::RowStream;
use crate::model::batch::FieldType;
use crate::model::column_name;
use crate::model::error::Result;
use crate::query::scan::{
    ScanBatch, ScanColumn, ScanRequest, ScanSchema, ScanValues, TagMaps, Texts,
};

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
    let keys = Keys::of(stream.schema());
    let (mut sum, mut rows, mut series) = (0_u64, Vec::new(), Series::default());
    while let Some(batch) = stream.next_batch()? {
        let measurement = &keys.measurements[batch.measurement as usize];
        rows.clear();
        rows.extend(batch.times_ns.iter().enumerate().map(|(row, time_ns)| {
            let series = series.key_of(&batch, measurement, row);
            mixed(series.wrapping_add(mixed(time_ns.cast_unsigned())))
        }));
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
        ScanValues::Text(values) => texts.key_of(text_of(values, row)),
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
struct Keys {
    /// Encoded name of each measurement, with which the name of a series begins.
    measurements: Vec<Vec<u8>>,
    fields: Vec<u64>,
}

impl Keys {
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

/// The series of the previous row: most rows have the same series as their predecessor.
#[derive(Default)]
struct Series {
    name: Vec<u8>,
    key: u64,
    scratch: Vec<u8>,
}

impl Series {
    /// Returns the key of the series of a row.
    fn key_of(&mut self, batch: &ScanBatch, measurement: &[u8], row: usize) -> u64 {
        if row > 0 && has_tags_of_row_before(&batch.tags, row) {
            return self.key;
        }
        let entries = range_of(&batch.tags.offsets, row);
        self.scratch.clear();
        self.scratch.extend(measurement);
        push_count(entries.len(), &mut self.scratch);
        for entry in entries {
            push_text(text_of(&batch.tags.keys, entry), &mut self.scratch);
            push_text(text_of(&batch.tags.values, entry), &mut self.scratch);
        }
        if self.scratch != self.name {
            std::mem::swap(&mut self.scratch, &mut self.name);
            self.key = key_of(&self.name);
        }
        self.key
    }
}

fn has_tags_of_row_before(tags: &TagMaps, row: usize) -> bool {
    let (before, own) = (range_of(&tags.offsets, row - 1), range_of(&tags.offsets, row));
    let is_same = |texts: &Texts| {
        let offset = |entry: usize| offset_at(&texts.offsets, entry);
        let bytes =
            |entries: &Range<usize>| &texts.bytes[offset(entries.start)..offset(entries.end)];
        let length = |entry: usize| texts.offsets[entry + 1] - texts.offsets[entry];
        bytes(&before) == bytes(&own) && before.clone().map(length).eq(own.clone().map(length))
    };
    before.len() == own.len() && is_same(&tags.keys) && is_same(&tags.values)
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

fn text_of(texts: &Texts, index: usize) -> &[u8] {
    &texts.bytes[range_of(&texts.offsets, index)]
}

/// Returns the range from an offset to the next. Example: offsets 0, 3, 7 give 3..7 for index 1.
fn range_of(offsets: &[i32], index: usize) -> Range<usize> {
    offset_at(offsets, index)..offset_at(offsets, index + 1)
}

fn offset_at(offsets: &[i32], index: usize) -> usize {
    usize::try_from(offsets[index]).expect("offsets are not negative")
}
