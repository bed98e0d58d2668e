//! Rows of one measurement that leave the store: a table is cut into batches of bounded size.

use std::collections::VecDeque;
use std::ops::Range;

use super::arrays::{ScanColumn, column_of, gathered, whole_column};
use super::schema::ScanSchema;
use super::selection::ScanSelection;
use super::tags::{TagRuns, name_of};
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::limits::{SCAN_BATCH_BYTES, SCAN_BATCH_ROWS_MAX};

/// Some rows of one measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScanBatch {
    /// Number of rows.
    pub row_count: usize,
    /// Time of each row, in nanoseconds since 1970.
    pub times_ns: Vec<i64>,
    /// Index of the measurement in [`ScanSchema::measurements`].
    pub measurement: u32,
    /// Tags of the rows.
    pub tags: TagRuns,
    /// The columns in which a row has a value, each with its index in the schema, in order of the
    /// indices.
    pub columns: Vec<(usize, ScanColumn)>,
}

/// The wanted rows of a table that no batch has returned yet.
pub struct PendingRows {
    table: Table,
    measurement: u32,
    /// Ranges that do not touch.
    rows: VecDeque<Range<usize>>,
}

impl PendingRows {
    /// Takes the wanted rows of a table. Returns `None` if there are none.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a series has no name.
    pub fn new(
        mut table: Table,
        selection: &ScanSelection,
        schema: &ScanSchema,
        catalog: &Catalog,
    ) -> Result<Option<Self>> {
        let Some(&first) = table.series.first() else { return Ok(None) };
        let corrupt = Error::Corrupt { what: "a series without a name" };
        let measurement = catalog.series(first).ok_or(corrupt)?.measurement;
        let Some(index) = schema.measurement_of(measurement) else { return Ok(None) };
        if !selection.wants_measurement(measurement) {
            return Ok(None);
        }
        table.columns.retain(|column| schema.column_of(column.field).is_some());
        let mut rows = selection.rows(&table.series, &table.times_ns);
        if selection.leaves_out_empty_rows() {
            rows = with_values(&table, rows);
        }
        let pending = Self { table, measurement: index, rows: rows.into() };
        Ok(Some(pending).filter(|pending| !pending.rows.is_empty()))
    }

    /// Returns true if all rows were returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the next rows, as many as a batch may have.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a series has no name.
    pub fn next_batch(&mut self, schema: &ScanSchema, catalog: &Catalog) -> Result<ScanBatch> {
        let rows = self.take_rows(catalog)?;
        let row_count = rows.iter().map(Range::len).sum();
        let mut columns = Vec::with_capacity(self.table.columns.len());
        let tags;
        let times_ns;
        if row_count == self.table.row_count() {
            // Most tables are wanted whole. The batch then takes over their memory.
            let table = std::mem::take(&mut self.table);
            tags = TagRuns::of(&table.series, catalog)?;
            times_ns = table.times_ns;
            for column in table.columns {
                if let Some(index) = schema.column_of(column.field) {
                    columns.extend(whole_column(column, row_count).map(|column| (index, column)));
                }
            }
        } else {
            tags = TagRuns::of(&gathered(&self.table.series, &rows, row_count), catalog)?;
            times_ns = gathered(&self.table.times_ns, &rows, row_count);
            for column in &self.table.columns {
                if let Some(index) = schema.column_of(column.field) {
                    let column = column_of(column, &rows, row_count);
                    columns.extend(column.map(|column| (index, column)));
                }
            }
        }
        columns.sort_unstable_by_key(|(index, _)| *index);
        Ok(ScanBatch { row_count, times_ns, measurement: self.measurement, tags, columns })
    }

    /// Takes at least one row off the front, until the batch is full.
    fn take_rows(&mut self, catalog: &Catalog) -> Result<Vec<Range<usize>>> {
        let text_bytes: usize = self.table.columns.iter().map(text_bytes_of_value).sum();
        let cell_bytes = 8 * (self.table.columns.len() + 2) + text_bytes;
        let (mut rows_left, mut bytes_left) = (SCAN_BATCH_ROWS_MAX, SCAN_BATCH_BYTES);
        let mut taken: Vec<Range<usize>> = Vec::new();
        while let Some(rows) = self.rows.front_mut() {
            let series = self.table.series[rows.start];
            let of_series =
                self.table.series[rows.clone()].iter().take_while(|other| **other == series);
            let row_bytes = cell_bytes + name_of(series, catalog)?.as_bytes().len();
            let fitting = of_series.count().min(rows_left).min(bytes_left / row_bytes);
            let fitting = fitting.max(usize::from(taken.is_empty()));
            if fitting == 0 {
                break;
            }
            rows_left -= fitting;
            bytes_left = bytes_left.saturating_sub(fitting * row_bytes);
            let given = rows.start..rows.start + fitting;
            rows.start = given.end;
            if given.end == rows.end {
                self.rows.pop_front();
            }
            match taken.last_mut() {
                Some(last) if last.end == given.start => last.end = given.end,
                _ => taken.push(given),
            }
        }
        Ok(taken)
    }
}

/// Returns the average bytes of text of a value in a column.
fn text_bytes_of_value(column: &Column) -> usize {
    match &column.values {
        Values::Text(values) => {
            let bytes: usize = values.iter().map(|text| text.len()).sum();
            bytes / values.len().max(1)
        }
        Values::Float(_) | Values::Bool(_) => 0,
    }
}

/// Returns the `rows` that have a value in a column of the table.
fn with_values(table: &Table, rows: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if table.columns.iter().any(|column| column.rows == RowSet::All) {
        return rows;
    }
    let mut has_value = vec![false; table.row_count()];
    for column in &table.columns {
        if let RowSet::Some(present) = &column.rows {
            for row in present {
                has_value[*row as usize] = true;
            }
        }
    }
    let mut kept = Vec::new();
    for rows in rows {
        let mut start = rows.start;
        for stretch in has_value[rows].chunk_by(|a, b| a == b) {
            let end = start + stretch.len();
            if stretch[0] {
                kept.push(start..end);
            }
            start = end;
        }
    }
    kept
}
