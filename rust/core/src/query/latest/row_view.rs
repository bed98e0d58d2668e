//! The rows of a table one by one, each with its values.

use std::ops::Range;

use super::value::Value;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::names::FieldId;

/// Iterates over the rows of a table. The time grows with the values of the table.
pub(super) struct RowView<'t> {
    table: &'t Table,
    /// Columns in the order of a sample's values: by type, then by field.
    columns: Vec<&'t Column>,
    /// The cells of all rows, row by row, if rows differ in their fields.
    sparse: Option<SparseCells>,
    /// Otherwise the values of each column, in the same order.
    floats: Vec<&'t [f64]>,
    bools: Vec<&'t [bool]>,
    texts: Vec<&'t [Box<str>]>,
    /// Columns of the row whose cells were read last.
    present: Vec<&'t Column>,
    /// The shape of all rows, if all rows have one shape and it is known.
    shape: Option<u32>,
}

struct SparseCells {
    /// Start of the cells of each row, then the end of the cells of the last row.
    starts: Vec<u32>,
    /// Index of the column, and index of the value in the column.
    cells: Vec<(u32, u32)>,
}

/// The cells of a row.
pub(super) struct RowCells<'a> {
    /// Columns in which the row has a value, in the order of its values.
    pub(super) columns: &'a [&'a Column],
    /// The shape of these columns, if it is known. `Samples::shape_for` stores it here for the rows
    /// that follow.
    pub(super) shape: &'a mut Option<u32>,
    pub(super) values: ViewValues<'a>,
}

pub(super) enum ViewValues<'a> {
    /// A row with a value in every column.
    Dense {
        at: usize,
        floats: &'a [&'a [f64]],
        bools: &'a [&'a [bool]],
        texts: &'a [&'a [Box<str>]],
    },
    /// For each value, the index of its column and its index in the column.
    Sparse(&'a [(u32, u32)]),
}

impl<'t> RowView<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        let mut columns: Vec<&Column> = table.columns.iter().collect();
        columns.sort_unstable_by_key(|column| (column.values.field_type(), column.field));
        let mut rows = Self {
            table,
            columns: Vec::new(),
            sparse: None,
            floats: Vec::new(),
            bools: Vec::new(),
            texts: Vec::new(),
            present: Vec::new(),
            shape: None,
        };
        if columns.iter().any(|column| column.rows != RowSet::All) {
            rows.sparse = Some(SparseCells::new(&columns, table.row_count()));
            rows.columns = columns;
            return rows;
        }
        for column in &columns {
            match &column.values {
                Values::Float(values) => rows.floats.push(values),
                Values::Bool(values) => rows.bools.push(values),
                Values::Text(values) => rows.texts.push(values),
            }
        }
        rows.present = columns;
        rows
    }

    /// Returns true if the next row is a newer row of the same series, which replaces this row
    /// completely.
    pub(super) fn is_followed(&self, row: usize, range_ns: &Range<i64>) -> bool {
        let Table { series, times_ns, .. } = self.table;
        times_ns.get(row + 1).is_some_and(|next_ns| {
            series[row + 1] == series[row] && *next_ns > times_ns[row] && range_ns.contains(next_ns)
        })
    }

    /// Returns the cells of a row.
    #[inline]
    pub(super) fn cells(&mut self, row: usize) -> RowCells<'_> {
        let Self { columns, sparse, floats, bools, texts, present, shape, .. } = self;
        let values = if let Some(sparse) = sparse {
            let cells = &sparse.cells[sparse.starts[row] as usize..sparse.starts[row + 1] as usize];
            present.clear();
            present.extend(cells.iter().map(|(column, _)| columns[*column as usize]));
            *shape = None;
            ViewValues::Sparse(cells)
        } else {
            ViewValues::Dense { at: row, floats, bools, texts }
        };
        RowCells { columns: present, shape, values }
    }
}

impl SparseCells {
    fn new(columns: &[&Column], row_count: usize) -> Self {
        // There is a cell for each value, so there are fewer cells than a block may have values.
        let mut starts = vec![0_u32; row_count + 2];
        let each_row = |column: &Column, take: &mut dyn FnMut(usize, u32)| match &column.rows {
            RowSet::All => (0..row_count).zip(0..).for_each(|(row, index)| take(row, index)),
            RowSet::Some(rows) => {
                rows.iter().zip(0..).for_each(|(row, index)| take(*row as usize, index));
            }
        };
        for column in columns {
            each_row(column, &mut |row, _| starts[row + 2] += 1);
        }
        for row in 2..starts.len() {
            starts[row] += starts[row - 1];
        }
        let mut cells = vec![(0, 0); starts[row_count + 1] as usize];
        for (column, at) in columns.iter().zip(0..) {
            each_row(column, &mut |row, index| {
                let next = &mut starts[row + 1];
                cells[*next as usize] = (at, index);
                *next += 1;
            });
        }
        starts.pop();
        Self { starts, cells }
    }
}

impl RowCells<'_> {
    /// Returns the values of the row, with their fields.
    pub(super) fn values(&self) -> impl Iterator<Item = (FieldId, Value)> {
        self.columns.iter().enumerate().map(|(index, column)| {
            let at = match &self.values {
                ViewValues::Dense { at, .. } => *at,
                ViewValues::Sparse(cells) => cells[index].1 as usize,
            };
            (column.field, Value::of(column, at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(field: u32, rows: RowSet, values: Values) -> Column {
        Column { field, rows, values }
    }

    #[test]
    fn each_row_has_its_own_cells_by_type_then_field() {
        let table = Table {
            series: vec![0; 3],
            times_ns: vec![1, 2, 2],
            columns: vec![
                column(1, RowSet::Some(vec![0, 2]), Values::Bool(vec![true, false])),
                column(9, RowSet::All, Values::Float(vec![0.5, 1.5, 2.5])),
                column(4, RowSet::Some(vec![2]), Values::Float(vec![7.0])),
            ],
        };
        let mut rows = RowView::new(&table);
        let mut cells = |row| rows.cells(row).values().collect::<Vec<_>>();
        assert_eq!(cells(0), [(9, Value::Float(0.5)), (1, Value::Bool(true))]);
        assert_eq!(cells(1), [(9, Value::Float(1.5))]);
        let last = [(4, Value::Float(7.0)), (9, Value::Float(2.5)), (1, Value::Bool(false))];
        assert_eq!(cells(2), last);
        let followed = |row, start| rows.is_followed(row, &(start..10));
        assert_eq!([0, 1, 2].map(|row| followed(row, 0)), [true, false, false]);
        assert!(!followed(0, 3), "the next row is not asked for");
    }
}
