//! A table cut into parts, one below the other.
//!
//! A part costs its values: a column is looked at where it has some, not in each part.

use std::ops::Range;

use crate::model::batch::{Column, Rows, Table, Values};

/// The parts of a table, each copied when it is asked for.
pub(super) struct Cuts<'t> {
    table: &'t Table,
    parts: Vec<Part>,
}

/// Some neighbouring rows of the table.
struct Part {
    rows: Range<usize>,
    /// Index of each column that has values here, and their places.
    columns: Vec<(usize, Range<usize>)>,
}

impl<'t> Cuts<'t> {
    /// Cuts `table` before each row of `ends`, which ascend and end with its row count.
    pub(super) fn new(table: &'t Table, ends: &[usize]) -> Self {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut parts: Vec<Part> = starts
            .zip(ends)
            .map(|(start, end)| Part { rows: start..*end, columns: Vec::new() })
            .collect();
        for (at, column) in table.columns.iter().enumerate() {
            let mut start = 0;
            while start < column.values.len() {
                let row = column.rows.row_at(start);
                let part = &mut parts[ends.partition_point(|end| *end <= row)];
                let places = start..column.rows.within(&part.rows).end;
                start = places.end;
                part.columns.push((at, places));
            }
        }
        Self { table, parts }
    }

    /// Each part as a table; columns without a value in it are left out.
    pub(super) fn tables(&self) -> impl Iterator<Item = Table> {
        self.parts.iter().map(|part| self.part(part))
    }

    fn part(&self, part: &Part) -> Table {
        let column = |(at, places): &(usize, Range<usize>)| {
            let column = &self.table.columns[*at];
            let rows = match &column.rows {
                Rows::Some(present) if places.len() < part.rows.len() => {
                    let row = |row: &u32| row - row_number(part.rows.start);
                    Rows::Some(present[places.clone()].iter().map(row).collect())
                }
                _ => Rows::All,
            };
            let values = match &column.values {
                Values::Float(values) => Values::Float(values[places.clone()].to_vec()),
                Values::Bool(values) => Values::Bool(values[places.clone()].to_vec()),
                Values::Text(values) => Values::Text(values[places.clone()].to_vec()),
            };
            Column { field: column.field, rows, values }
        };
        Table {
            series: self.table.series[part.rows.clone()].to_vec(),
            times_ns: self.table.times_ns[part.rows.clone()].to_vec(),
            columns: part.columns.iter().map(column).collect(),
        }
    }
}

fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("a table has fewer than 2^32 rows")
}
