//! A table sliced by rows.
//!
//! The cost of a column grows with its values: slices without a value of the column do not look at
//! it.

use std::ops::Range;

use super::span::row_number;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::error::Result;

/// Hands the slices of `table` before each row of `ends` to `take`, without a copy if there is only
/// one. `ends` ascends, and its last item is the row count.
///
/// # Errors
/// Returns the errors of `take`.
pub(super) fn cut(
    table: Table,
    ends: &[usize],
    mut take: impl FnMut(Table) -> Result<()>,
) -> Result<()> {
    if ends.len() == 1 {
        return take(table);
    }
    Slices::new(&table, ends).tables().try_for_each(take)
}

/// Slices of a table. A slice is copied when it is asked for.
pub(super) struct Slices<'t> {
    table: &'t Table,
    slices: Vec<Slice>,
}

/// Some neighbouring rows of the table.
struct Slice {
    rows: Range<usize>,
    /// Index of each column that has values in this slice, and the indices of these values.
    columns: Vec<(usize, Range<usize>)>,
}

impl<'t> Slices<'t> {
    /// Slices `table` before each row of `ends`. `ends` ascends, and its last item is the row
    /// count.
    pub(super) fn new(table: &'t Table, ends: &[usize]) -> Self {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut slices: Vec<Slice> = starts
            .zip(ends)
            .map(|(start, end)| Slice { rows: start..*end, columns: Vec::new() })
            .collect();
        for (at, column) in table.columns.iter().enumerate() {
            let mut start = 0;
            while start < column.values.len() {
                let row = column.rows.row_at(start);
                let slice = &mut slices[ends.partition_point(|end| *end <= row)];
                let indices = start..column.rows.within(&slice.rows).end;
                start = indices.end;
                slice.columns.push((at, indices));
            }
        }
        Self { table, slices }
    }

    /// Returns each slice as a table. Columns without a value in the slice are left out.
    pub(super) fn tables(&self) -> impl Iterator<Item = Table> {
        self.slices.iter().map(|slice| self.table_of(slice))
    }

    fn table_of(&self, slice: &Slice) -> Table {
        let column = |(at, indices): &(usize, Range<usize>)| {
            let column = &self.table.columns[*at];
            let rows = match &column.rows {
                RowSet::Some(present) if indices.len() < slice.rows.len() => {
                    let row = |row: &u32| row - row_number(slice.rows.start);
                    RowSet::Some(present[indices.clone()].iter().map(row).collect())
                }
                _ => RowSet::All,
            };
            let values = match &column.values {
                Values::Float(values) => Values::Float(values[indices.clone()].to_vec()),
                Values::Bool(values) => Values::Bool(values[indices.clone()].to_vec()),
                Values::Text(values) => Values::Text(values[indices.clone()].to_vec()),
            };
            Column { field: column.field, rows, values }
        };
        Table {
            series: self.table.series[slice.rows.clone()].to_vec(),
            times_ns: self.table.times_ns[slice.rows.clone()].to_vec(),
            columns: slice.columns.iter().map(column).collect(),
        }
    }
}
