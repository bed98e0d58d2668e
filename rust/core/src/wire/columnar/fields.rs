//! Columns of values on their way into the tables of a batch.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::input::{InputField, InputRows, InputValues};
use crate::model::batch::{
    Batch, BatchField, CellPosition, Column, Conflict, FieldType, RowSet, Values,
};

/// Table of a row that is rejected.
pub(super) const NO_TABLE: u32 = u32::MAX;

/// By row: its table, and its row in this table.
#[derive(Default)]
pub(super) struct Places {
    pub(super) table_of: Vec<u32>,
    pub(super) row_of: Vec<u32>,
}

impl Places {
    pub(super) fn push(&mut self, table: u32, row: u32) {
        self.table_of.push(table);
        self.row_of.push(row);
    }
}

/// A column of one table that has at least one value, and its first cell.
struct FilledColumn<'a> {
    table: u32,
    name: &'a str,
    first: CellPosition,
    field_type: FieldType,
    rows: Vec<u32>,
    values: Values,
}

/// Puts the values of `input` into the tables of `batch`, which have their rows already. Without
/// `places` all rows go into the only table, in their order. If columns with the same name have
/// different types, the column with the first cell counts. The other columns are a conflict.
pub(super) fn put_fields(
    batch: &mut Batch,
    input: &InputRows<'_>,
    places: Option<&Places>,
    fields_max: usize,
) {
    let mut found: Vec<FilledColumn<'_>> = Vec::new();
    for (key, field) in (0..).zip(&input.fields) {
        match places {
            None => found.extend(whole(field, key, input.row_count)),
            Some(places) => spread(field, key, places, &mut found),
        }
    }
    let mut first_of: HashMap<(u32, &str), (CellPosition, FieldType), RandomState> =
        HashMap::default();
    for column in &found {
        let this = (column.first, column.field_type);
        let first = first_of.entry((column.table, column.name)).or_insert(this);
        if this.0 < first.0 {
            *first = this;
        }
    }
    let mut conflict: Option<(CellPosition, &str)> = None;
    for column in found {
        if first_of[&(column.table, column.name)].1 != column.field_type {
            let this = (column.first, column.name);
            conflict =
                Some(conflict.map_or(this, |other| if this.0 < other.0 { this } else { other }));
            continue;
        }
        if batch.fields.len() >= fields_max {
            batch.has_excess_fields = true;
            continue;
        }
        let FilledColumn { table, name, first, field_type, rows, values } = column;
        let field = u32::try_from(batch.fields.len()).expect("fewer fields than cells");
        batch.fields.push(BatchField { table, name: name.to_owned(), field_type, first });
        let of_table = &mut batch.tables[table as usize];
        let is_all = rows.is_empty() || rows.len() == of_table.row_count();
        let rows = if is_all { RowSet::All } else { RowSet::Some(rows) };
        of_table.columns.push(Column { field, rows, values });
    }
    batch.conflict = conflict.map(|(at, field)| Conflict { at, field: field.to_owned() });
}

/// Returns a column for the only table. Its rows are empty if every row has a value.
fn whole<'a>(field: &InputField<'a>, key: u32, row_count: usize) -> Option<FilledColumn<'a>> {
    let (first_row, rows, values) = match &field.present {
        None => ((row_count > 0).then_some(0)?, Vec::new(), all(&field.values)),
        Some(present) => (*present.first()?, present.clone(), taken(&field.values, present)),
    };
    let first = CellPosition { record: first_row, key };
    let field_type = field.values.field_type();
    Some(FilledColumn { table: 0, name: field.name, first, field_type, rows, values })
}

fn all(values: &InputValues<'_>) -> Values {
    match values {
        InputValues::Float(values) => Values::Float(values.to_vec()),
        InputValues::Bool(values) => Values::Bool(values.clone()),
        InputValues::Text(values) => Values::Text(values.iter().copied().map(Into::into).collect()),
    }
}

/// Returns the values of some rows.
fn taken(values: &InputValues<'_>, rows: &[u32]) -> Values {
    let rows = rows.iter().map(|row| *row as usize);
    match values {
        InputValues::Float(values) => Values::Float(rows.map(|row| values[row]).collect()),
        InputValues::Bool(values) => Values::Bool(rows.map(|row| values[row]).collect()),
        InputValues::Text(values) => Values::Text(rows.map(|row| values[row].into()).collect()),
    }
}

/// Splits a column over several tables. Some of its rows may have no table.
fn spread<'a>(
    field: &InputField<'a>,
    key: u32,
    places: &Places,
    found: &mut Vec<FilledColumn<'a>>,
) {
    // By table: rows of the table, and rows of the input.
    let mut of_tables: Vec<(u32, Vec<u32>, Vec<u32>)> = Vec::new();
    let mut add = |from: u32| {
        let row = from as usize;
        let table = places.table_of[row];
        if table == NO_TABLE {
            return;
        }
        let at = match of_tables.last() {
            Some(last) if last.0 == table => of_tables.len() - 1,
            _ => of_tables.iter().position(|of| of.0 == table).unwrap_or_else(|| {
                of_tables.push((table, Vec::new(), Vec::new()));
                of_tables.len() - 1
            }),
        };
        of_tables[at].1.push(places.row_of[row]);
        of_tables[at].2.push(from);
    };
    match &field.present {
        None => (0..).zip(&places.table_of).for_each(|(row, _)| add(row)),
        Some(present) => present.iter().for_each(|row| add(*row)),
    }
    for (table, rows, from) in of_tables {
        found.push(FilledColumn {
            table,
            name: field.name,
            first: CellPosition { record: from[0], key },
            field_type: field.values.field_type(),
            rows,
            values: taken(&field.values, &from),
        });
    }
}
