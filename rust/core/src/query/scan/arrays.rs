//! Values of columns as Arrow lays them out, so that they are handed on without a copy.

use std::ops::Range;

use crate::model::batch::{Column, Rows, Values};

/// Texts one behind the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// Offset of each in the bytes, and after them that of their end.
    pub offsets: Vec<i32>,
    /// UTF-8.
    pub bytes: Vec<u8>,
}

impl Texts {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }

    /// Appends one.
    ///
    /// # Panics
    /// If there are 2 GiB of text; batches are far smaller.
    pub fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// Ends a text at the end of the bytes.
    fn end(&mut self) {
        self.offsets.push(i32::try_from(self.bytes.len()).expect("a batch has less text"));
    }
}

/// One column of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanColumn {
    /// One bit per row, set where there is a value; `None` where all rows have one.
    pub validity: Option<Vec<u8>>,
    /// Rows without a value.
    pub null_count: usize,
    /// The values.
    pub values: ScanValues,
}

/// Values, one per row; anything where a row has none.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanValues {
    /// Doubles.
    Float(Vec<f64>),
    /// One bit per row.
    Bool(Vec<u8>),
    /// Texts.
    Text(Texts),
}

/// All values of `column`, with its memory where that goes.
pub(super) fn whole_column(column: Column, row_count: usize) -> Option<ScanColumn> {
    match column {
        Column { rows: Rows::All, values: Values::Float(values), .. } => {
            Some(ScanColumn { validity: None, null_count: 0, values: ScanValues::Float(values) })
        }
        column => column_of(&column, std::slice::from_ref(&(0..row_count)), row_count),
    }
}

/// Values of `column` in `rows`, which ascend, do not touch and are `row_count` together; `None`
/// where there is none.
pub(super) fn column_of(
    column: &Column,
    rows: &[Range<usize>],
    row_count: usize,
) -> Option<ScanColumn> {
    if let Rows::Some(present) = &column.rows {
        return sparse(present, &column.values, rows, row_count);
    }
    let values = match &column.values {
        Values::Float(values) => ScanValues::Float(gathered(values, rows, row_count)),
        Values::Bool(values) => ScanValues::Bool(bits(values, rows, row_count)),
        Values::Text(values) => ScanValues::Text(texts(values, rows)),
    };
    Some(ScanColumn { validity: None, null_count: 0, values })
}

/// Items of some rows.
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

/// Values of a column that not all rows have.
fn sparse(
    present: &[u32],
    values: &Values,
    rows: &[Range<usize>],
    row_count: usize,
) -> Option<ScanColumn> {
    // Row of the batch and index of the value, for each value.
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

/// Values put at their rows; `found` has row and index of each.
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
