//! Turns accepted records into rows of columns.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::model::batch::{
    Batch, BatchField, CellPosition, Column, Conflict, FieldType, RowSet, Table, Values,
};
use crate::model::limits::WriteLimits;
use crate::model::new_series::NewSeries;

use super::prefix::Prefix;
use super::value::{CellValue, FieldCell, RecordValues, RowColumns};

/// Marks a column that is not known yet, see [`FieldCell::column`].
pub(super) const UNKNOWN_COLUMN: u32 = u32::MAX;

/// Rows of a table or values of a column for which memory is reserved at first, and the factor of
/// growth. Doubling would copy more often. A column grows only by its own values, so a wide record
/// does not reserve memory for all rows in each of its columns. Example: a column has room for 4,
/// then 32, then 256 values.
const ROOM_MIN: usize = 4;
const GROWTH: usize = 8;

/// A record that is accepted.
pub(super) struct AcceptedRecord<'a> {
    pub(super) record: u32,
    pub(super) measurement: &'a str,
    pub(super) series: u32,
    pub(super) time_ns: i64,
    /// The table that [`FieldCell::column`] of its cells refers to.
    pub(super) cells_table: Option<u32>,
}

/// Indices of a table while it grows.
#[derive(Default)]
struct TableIndex {
    /// Columns by name.
    by_name: HashTable<u32>,
    /// Names of the columns as JSON keys, `None` if a name needs escapes.
    keys: Vec<Option<Prefix>>,
}

/// Builds a [`Batch`].
pub(super) struct Columns {
    batch: Batch,
    indices: Vec<TableIndex>,
    by_measurement: HashTable<u32>,
    /// Table of the last row. The next row most likely has the same table.
    last_table: Option<u32>,
    /// Greatest number of rows of a table.
    rows_max: usize,
    /// Greatest number of distinct fields of a batch that is stored.
    fields_max: usize,
    /// Bytes of the names of fields: so far, and at most.
    names_bytes: usize,
    names_bytes_max: usize,
    hasher: RandomState,
}

impl Columns {
    pub(super) fn new(ingest_ns: i64, limits: &WriteLimits, names_bytes_max: usize) -> Self {
        Self {
            batch: Batch { ingest_ns, ..Batch::default() },
            indices: Vec::new(),
            by_measurement: HashTable::new(),
            last_table: None,
            rows_max: limits.batch_records_max,
            fields_max: limits.tenant_fields_max,
            names_bytes: 0,
            names_bytes_max,
            hasher: RandomState::default(),
        }
    }

    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Returns true if every cell so far has a column.
    pub(super) const fn is_complete(&self) -> bool {
        self.batch.conflict.is_none() && !self.batch.has_excess_fields && !self.has_excess_names()
    }

    /// Returns true if the names of fields have too many bytes. Values of further fields are left
    /// out, so the batch must not be stored.
    pub(super) const fn has_excess_names(&self) -> bool {
        self.names_bytes > self.names_bytes_max
    }

    /// Returns the measurement of a table.
    #[inline]
    pub(super) fn measurement(&self, table: u32) -> Option<&str> {
        self.batch.measurements.get(table as usize).map(String::as_str)
    }

    /// Returns the table of the previous row.
    pub(super) const fn last_table(&self) -> Option<u32> {
        self.last_table
    }

    /// Returns the table of `measurement` if it has a row.
    pub(super) fn find_table(&self, measurement: &str) -> Option<u32> {
        let measures = |table: u32| {
            self.batch.measurements.get(table as usize).is_some_and(|name| name == measurement)
        };
        if let Some(table) = self.last_table.filter(|&table| measures(table)) {
            return Some(table);
        }
        let hash = self.hasher.hash_one(measurement);
        self.by_measurement.find(hash, |&table| measures(table)).copied()
    }

    /// Returns the name of a column as a JSON key, or `None` if it needs escapes.
    #[inline]
    pub(super) fn plain_key(&self, table: u32, column: u32) -> Option<&Prefix> {
        self.indices.get(table as usize)?.keys.get(column as usize)?.as_ref()
    }

    /// Returns the column of the field `name`, or [`UNKNOWN_COLUMN`].
    pub(super) fn find_column(&self, table: u32, name: &str) -> u32 {
        let Some(index) = self.indices.get(table as usize) else {
            return UNKNOWN_COLUMN;
        };
        let hash = self.hasher.hash_one(name);
        let found = index.by_name.find(hash, |&column| self.is_named(table, column, name));
        found.copied().unwrap_or(UNKNOWN_COLUMN)
    }

    /// Returns the type of a known column.
    #[inline]
    pub(super) fn field_type(&self, table: u32, column: u32) -> Option<FieldType> {
        let table = self.batch.tables.get(table as usize)?;
        Some(table.columns.get(column as usize)?.values.field_type())
    }

    /// Returns true if the column exists and its field is called `name`.
    #[inline]
    pub(super) fn is_named(&self, table: u32, column: u32, name: &str) -> bool {
        let table = self.batch.tables.get(table as usize);
        let column = table.and_then(|table| table.columns.get(column as usize));
        let field = column.and_then(|column| self.batch.fields.get(column.field as usize));
        field.is_some_and(|field| field.name == name)
    }

    /// Returns the time to store for a record sent with `sent_ns`: no later than the ingest
    /// instant. Example: a record from 12:00:05 that arrives at 12:00:00 is stored at 12:00:00.
    #[inline]
    pub(super) fn clamp(&mut self, sent_ns: i64) -> i64 {
        self.batch.clamped_count += u32::from(sent_ns > self.batch.ingest_ns);
        sent_ns.min(self.batch.ingest_ns)
    }

    /// Adds a row to a known table and takes its values. Each value has the type of its column, and
    /// each column appears once.
    ///
    /// # Panics
    /// Panics if there is no such table or column.
    #[inline]
    pub(super) fn accept_known(
        &mut self,
        table_at: u32,
        series: u32,
        time_ns: i64,
        columns: &RowColumns,
        values: &mut RecordValues<'_>,
    ) {
        let row_at = self.add_row(table_at, series, time_ns);
        let (table, rows_max) = (&mut self.batch.tables[table_at as usize], self.rows_max);
        for (&column, &value) in columns.doubles.iter().zip(&values.doubles) {
            let column = &mut table.columns[column as usize];
            if let Values::Float(values) = &mut column.values {
                note_row(&mut column.rows, values.len(), row_at);
                push(values, value, rows_max);
            }
        }
        for (&column, value) in columns.others.iter().zip(&mut values.others) {
            let pushed = take(&mut table.columns[column as usize], row_at, value, rows_max);
            debug_assert!(pushed, "a value of another type than its column");
        }
    }

    /// Adds a row without values to a known table. Returns the index of the row.
    #[inline]
    fn add_row(&mut self, table_at: u32, series: u32, time_ns: i64) -> usize {
        self.last_table = Some(table_at);
        self.batch.accepted_count += 1;
        let table = &mut self.batch.tables[table_at as usize];
        let row_at = table.row_count();
        push(&mut table.series, series, self.rows_max);
        push(&mut table.times_ns, time_ns, self.rows_max);
        row_at
    }

    /// Adds `row`, sets the columns of its cells and takes their texts. A cell whose type differs
    /// from its column is left out. The first such cell is noted as the batch's conflict. A cell
    /// whose column would exceed the bound is left out too.
    ///
    /// # Panics
    /// Panics if two cells have the same name. The caller excludes this.
    pub(super) fn accept(&mut self, row: &AcceptedRecord<'_>, cells: &mut [FieldCell<'_>]) {
        let table_at = match self.find_table(row.measurement) {
            Some(table) => table,
            None => self.add_table(row.measurement),
        };
        let row_at = self.add_row(table_at, row.series, row.time_ns);
        let columns_known = row.cells_table == Some(table_at);
        for (key, cell) in cells.iter_mut().enumerate() {
            if !columns_known || cell.column == UNKNOWN_COLUMN {
                cell.column = match self.find_column(table_at, &cell.name) {
                    UNKNOWN_COLUMN if self.batch.fields.len() >= self.fields_max => {
                        self.batch.has_excess_fields = true;
                        continue;
                    }
                    UNKNOWN_COLUMN if self.has_excess_names() => continue,
                    UNKNOWN_COLUMN => self.add_column(table_at, cell, position(row.record, key)),
                    column => column,
                };
            }
            let column = &mut self.batch.tables[table_at as usize].columns[cell.column as usize];
            if !take(column, row_at, &mut cell.value, self.rows_max) {
                note_conflict(&mut self.batch.conflict, row.record, key, &cell.name);
            }
        }
    }

    /// Returns the batch with its new series. A column without a value in the last rows of its
    /// table gets a list of rows.
    pub(super) fn finish(mut self, new_series: NewSeries) -> Batch {
        self.batch.new_series = new_series;
        for table in &mut self.batch.tables {
            let row_count = table.row_count();
            for column in &mut table.columns {
                let value_count = column.values.len();
                if column.rows == RowSet::All && value_count < row_count {
                    column.rows = RowSet::Some((0..count(value_count)).collect());
                }
            }
        }
        self.batch
    }

    fn add_table(&mut self, measurement: &str) -> u32 {
        let table = count(self.batch.tables.len());
        self.batch.tables.push(Table::default());
        self.batch.measurements.push(measurement.to_owned());
        self.indices.push(TableIndex::default());
        let (hasher, names) = (&self.hasher, &self.batch.measurements);
        self.by_measurement.insert_unique(hasher.hash_one(measurement), table, |&table| {
            hasher.hash_one(names[table as usize].as_str())
        });
        table
    }

    fn add_column(&mut self, table_at: u32, cell: &FieldCell<'_>, first: CellPosition) -> u32 {
        let field_type = cell.value.field_type();
        let field = count(self.batch.fields.len());
        let name = cell.name.as_ref().to_owned();
        self.names_bytes += name.len();
        let index = &mut self.indices[table_at as usize];
        index.keys.push(plain_key(&name));
        self.batch.fields.push(BatchField { table: table_at, name, field_type, first });
        let columns = &mut self.batch.tables[table_at as usize].columns;
        let column = count(columns.len());
        columns.push(Column { field, rows: RowSet::All, values: Values::new(field_type) });
        let (hasher, fields) = (&self.hasher, &self.batch.fields);
        index.by_name.insert_unique(hasher.hash_one(cell.name.as_ref()), column, |&column| {
            hasher.hash_one(fields[columns[column as usize].field as usize].name.as_str())
        });
        column
    }
}

/// Appends `item` to a list of at most `length_max` items.
#[inline]
fn push<T>(list: &mut Vec<T>, item: T, length_max: usize) {
    if list.len() == list.capacity() {
        grow(list, length_max);
    }
    list.push(item);
}

#[cold]
fn grow<T>(list: &mut Vec<T>, length_max: usize) {
    let room = (list.len() * (GROWTH - 1)).max(ROOM_MIN);
    list.reserve_exact(room.min(length_max.saturating_sub(list.len())));
}

/// Takes `value` for row `row_at` of the table. Returns false if its type differs from the column.
#[inline]
fn take(column: &mut Column, row_at: usize, value: &mut CellValue<'_>, rows_max: usize) -> bool {
    let value_count = column.values.len();
    match (&mut column.values, value) {
        (Values::Float(values), CellValue::Float(value)) => push(values, *value, rows_max),
        (Values::Bool(values), CellValue::Bool(value)) => push(values, *value, rows_max),
        (Values::Text(values), CellValue::Text(value)) => {
            push(values, std::mem::take(value).into(), rows_max);
        }
        _ => return false,
    }
    note_row(&mut column.rows, value_count, row_at);
    true
}

/// Notes the row of a value that follows `value_count` values in its column.
#[inline]
fn note_row(rows: &mut RowSet, value_count: usize, row_at: usize) {
    if !matches!(rows, RowSet::All) || value_count != row_at {
        push_row(rows, count(value_count), count(row_at));
    }
}

/// Notes a row as [`note_row`] does, in a column without a value in some row.
#[cold]
fn push_row(rows: &mut RowSet, value_count: u32, row_at: u32) {
    match rows {
        RowSet::All => *rows = RowSet::Some((0..value_count).chain([row_at]).collect()),
        RowSet::Some(rows) => {
            assert!(rows.last() < Some(&row_at), "one value of a field per row");
            rows.push(row_at);
        }
    }
}

#[cold]
fn note_conflict(conflict: &mut Option<Conflict>, record: u32, key: usize, name: &str) {
    if conflict.is_none() {
        *conflict = Some(Conflict { at: position(record, key), field: name.to_owned() });
    }
}

fn position(record: u32, key: usize) -> CellPosition {
    CellPosition { record, key: count(key) }
}

fn plain_key(name: &str) -> Option<Prefix> {
    let is_plain = !name.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    is_plain.then(|| Prefix::new(&[b"\"", name.as_bytes(), b"\""].concat()))
}

fn count(value: usize) -> u32 {
    u32::try_from(value).expect("a batch has fewer than 2^32 parts")
}
