//! The newest samples as rows, from which they can be built again.

use super::{Cells, Latest, LatestTable, NONE};
use crate::batch::{Column, Rows, SeriesId, Table, Values};

impl Latest {
    /// Rows that, applied to nothing, give the samples here whose times are `kept`: one table for
    /// each measurement, in no particular order.
    #[must_use]
    pub fn rows(&self, kept: impl Fn(i64) -> bool) -> Vec<Table> {
        let rows = self.tables.values().map(|table| table.rows(&kept));
        rows.filter(|table| table.row_count() > 0).collect()
    }
}

impl LatestTable {
    fn rows(&self, kept: &impl Fn(i64) -> bool) -> Table {
        let mut table = Table::default();
        // The slot behind each row that has its values.
        let mut slots = Vec::new();
        for (slot, time_ns) in (0_u32..).zip(&self.times_ns) {
            let newest = self.series[slot as usize];
            if newest == NONE || !kept(*time_ns) {
                continue;
            }
            // Of a tag set that shares the instant, the last row alone decides which tags win.
            let mut earlier: Vec<SeriesId> = Vec::new();
            for id in self.merged.get(&slot).into_iter().flatten() {
                earlier.retain(|other| other != id);
                earlier.push(*id);
            }
            earlier.retain(|id| *id != newest);
            for id in earlier {
                table.series.push(id);
                table.times_ns.push(*time_ns);
            }
            slots.push((u32::try_from(table.series.len()).expect("rows have 32 bits"), slot));
            table.series.push(newest);
            table.times_ns.push(*time_ns);
        }
        let column = |column: &super::LatestColumn| {
            let (rows, values) = match &column.cells {
                Cells::Float(cells) => {
                    let value = |at: usize| Some(cells[at]).filter(|value| !value.is_nan());
                    let (rows, values) = pick(&slots, value);
                    (rows, Values::Float(values))
                }
                Cells::Bool(cells) => {
                    let (rows, values) = pick(&slots, |at| cells[at]);
                    (rows, Values::Bool(values))
                }
                Cells::Text(cells) => {
                    let (rows, values) = pick(&slots, |at| cells[at].clone());
                    (rows, Values::Text(values))
                }
            };
            let is_whole = rows.len() == table.series.len();
            let rows = if is_whole { Rows::All } else { Rows::Some(rows) };
            (!values.is_empty()).then_some(Column { field: column.field, rows, values })
        };
        table.columns = self.columns.iter().filter_map(column).collect();
        table
    }
}

fn pick<T>(slots: &[(u32, u32)], value: impl Fn(usize) -> Option<T>) -> (Vec<u32>, Vec<T>) {
    slots.iter().filter_map(|(row, slot)| Some((*row, value(*slot as usize)?))).unzip()
}
