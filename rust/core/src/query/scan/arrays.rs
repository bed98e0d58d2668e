//! Values of columns in the layout of Arrow, so that they are handed over without a copy.

use std::ops::Range;

use crate::model::batch::{Column, RowSet, Values};

/// Texts, one after another.
///
/// Example: the texts `ab` and `c` are the bytes `abc` and the offsets 0, 2 and 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// Offset of each text in the bytes, then the offset of their end.
    pub offsets: Vec<i32>,
    /// UTF-8 bytes of all texts.
    pub bytes: Vec<u8>,
}

impl Texts {
    /// Returns an empty list of texts.
    #[must_use]
    pub fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }

    /// Appends a text.
    ///
    /// # Panics
    /// Panics if there are 2 GiB of text or more. Batches are far smaller.
    pub fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// Returns the bytes of the text at `index`.
    ///
    /// # Panics
    /// Panics if there is no such text.
    #[must_use]
    pub fn bytes_of(&self, index: usize) -> &[u8] {
        &self.bytes[range_of(&self.offsets, index)]
    }

    /// Returns the number of texts.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Ends a text at the current end of the bytes.
    fn end(&mut self) {
        self.offsets.push(i32::try_from(self.bytes.len()).expect("a batch has less text"));
    }
}

/// Returns the range from an offset to the next. Example: offsets 0, 3, 7 give 3..7 for index 1.
pub(super) fn range_of(offsets: &[i32], index: usize) -> Range<usize> {
    range_between(offsets[index], offsets[index + 1])
}

pub(super) fn range_between(start: i32, end: i32) -> Range<usize> {
    let at = |offset: i32| usize::try_from(offset).expect("offsets are not negative");
    at(start)..at(end)
}

/// Appends `items` as often as `times` says. Doubles what it copied as long as possible, because
/// long copies are fast.
///
/// Example: the items 1 and 2, three times, are 1, 2, 1, 2, 1, 2.
pub fn extend_repeated<T: Copy>(out: &mut Vec<T>, items: &[T], times: usize) {
    let start = out.len();
    let end = start + items.len() * times;
    out.reserve(end - start);
    out.extend_from_slice(&items[..items.len().min(end - start)]);
    while out.len() < end {
        let copied = (out.len() - start).min(end - out.len());
        out.extend_from_within(start..start + copied);
    }
}

/// One column of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanColumn {
    /// A bit for each row, set if the row has a value. `None` if all rows have a value.
    pub validity: Option<Vec<u8>>,
    /// Number of rows without a value.
    pub null_count: usize,
    /// The values.
    pub values: ScanValues,
}

/// Values, one for each row. The value is arbitrary if the row has none.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanValues {
    /// Doubles.
    Float(Vec<f64>),
    /// A bit for each row.
    Bool(Vec<u8>),
    /// Texts.
    Text(Texts),
}

/// Returns all values of `column`. Reuses its memory if possible.
pub(super) fn whole_column(column: Column, row_count: usize) -> Option<ScanColumn> {
    match column {
        Column { rows: RowSet::All, values: Values::Float(values), .. } => {
            Some(ScanColumn { validity: None, null_count: 0, values: ScanValues::Float(values) })
        }
        column => column_of(&column, std::slice::from_ref(&(0..row_count)), row_count),
    }
}

/// Returns the values of `column` in `rows`, or `None` if there are none. The rows ascend, do not
/// touch, and are `row_count` in total.
pub(super) fn column_of(
    column: &Column,
    rows: &[Range<usize>],
    row_count: usize,
) -> Option<ScanColumn> {
    if let RowSet::Some(present) = &column.rows {
        return sparse(present, &column.values, rows, row_count);
    }
    let values = match &column.values {
        Values::Float(values) => ScanValues::Float(gathered(values, rows, row_count)),
        Values::Bool(values) => ScanValues::Bool(bits(values, rows, row_count)),
        Values::Text(values) => ScanValues::Text(texts(values, rows)),
    };
    Some(ScanColumn { validity: None, null_count: 0, values })
}

/// Returns the items of some rows.
pub(super) fn gathered<T: Copy>(values: &[T], rows: &[Range<usize>], row_count: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(row_count);
    for rows in rows {
        out.extend_from_slice(&values[rows.clone()]);
    }
    out
}

fn bits(values: &[bool], rows: &[Range<usize>], row_count: usize) -> Vec<u8> {
    let mut bits = vec![0; row_count.div_ceil(8)];
    let wanted = rows.iter().flat_map(|rows| &values[rows.clone()]);
    for (row, is_set) in wanted.enumerate() {
        bits[row / 8] |= u8::from(*is_set) << (row % 8);
    }
    bits
}

fn texts(values: &[Box<str>], rows: &[Range<usize>]) -> Texts {
    let mut texts = Texts::new();
    rows.iter().flat_map(|rows| &values[rows.clone()]).for_each(|text| texts.push(text));
    texts
}

/// Returns the values of a column in which some rows have no value.
fn sparse(
    present: &[u32],
    values: &Values,
    rows: &[Range<usize>],
    row_count: usize,
) -> Option<ScanColumn> {
    // For each value, its row in the batch and its index in the column.
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut first = 0;
    for rows in rows {
        let start = present.partition_point(|row| (*row as usize) < rows.start);
        let within = present[start..].iter().take_while(|row| (**row as usize) < rows.end);
        found.extend(
            within.zip(start..).map(|(row, index)| (first + *row as usize - rows.start, index)),
        );
        first += rows.len();
    }
    if found.is_empty() {
        return None;
    }
    let values = scattered(values, &found, row_count);
    let null_count = row_count - found.len();
    let mut validity = vec![0; row_count.div_ceil(8)];
    for (row, _) in &found {
        validity[row / 8] |= 1 << (row % 8);
    }
    Some(ScanColumn { validity: (null_count > 0).then_some(validity), null_count, values })
}

/// Puts values at their rows. `found` has the row and the index of each value.
fn scattered(values: &Values, found: &[(usize, usize)], row_count: usize) -> ScanValues {
    match values {
        Values::Float(values) => {
            let mut out = vec![0.0; row_count];
            for (row, index) in found {
                out[*row] = values[*index];
            }
            ScanValues::Float(out)
        }
        Values::Bool(values) => {
            let mut out = vec![0; row_count.div_ceil(8)];
            for (row, index) in found {
                out[row / 8] |= u8::from(values[*index]) << (row % 8);
            }
            ScanValues::Bool(out)
        }
        Values::Text(values) => {
            let mut out = Texts::new();
            for (row, index) in found {
                let end = out.offsets[out.offsets.len() - 1];
                out.offsets.resize(row + 1, end);
                out.push(&values[*index]);
            }
            let end = out.offsets[out.offsets.len() - 1];
            out.offsets.resize(row_count + 1, end);
            ScanValues::Text(out)
        }
    }
}
