//! Memory of decoded tables.

use crate::model::batch::{RowSet, Table, Values};

/// Bytes of the rows and values of `table`.
pub(in crate::plane) fn table_bytes(table: &Table) -> usize {
    let columns = table.columns.iter().map(|column| {
        let rows = match &column.rows {
            RowSet::All => 0,
            RowSet::Some(rows) => size_of_val(rows.as_slice()),
        };
        rows + match &column.values {
            Values::Float(values) => size_of_val(values.as_slice()),
            Values::Bool(values) => size_of_val(values.as_slice()),
            Values::Text(values) => {
                let texts: usize = values.iter().map(|text| text.len()).sum();
                size_of_val(values.as_slice()) + texts
            }
        }
    });
    let rows = size_of_val(table.series.as_slice()) + size_of_val(table.times_ns.as_slice());
    size_of::<Table>() + rows + columns.sum::<usize>()
}
