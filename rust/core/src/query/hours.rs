//! Hours of one field after another, put together from their statistics.

use super::collector::{Collector, ColumnValues, RowRun};
use crate::model::aggregate::Statistic;
use crate::model::batch::{Column, Values};
use crate::model::fold::Fold;
use crate::model::names::FieldId;

/// Rows of statistics that are wanted, and what is known of one field in them.
pub(super) struct Hours {
    selected: Vec<RowRun>,
    /// By row of the table.
    starts_ns: Vec<i64>,
    /// By index of the row among those selected.
    folds: Vec<Fold>,
    /// The indexes at which there is a fold.
    touched: Vec<usize>,
}

impl Hours {
    pub(super) fn new(selected: Vec<RowRun>, starts_ns: Vec<i64>) -> Self {
        Self { selected, starts_ns, folds: Vec::new(), touched: Vec::new() }
    }

    /// Takes one statistic of the field in.
    pub(super) fn set(&mut self, statistic: Statistic, column: &Column) {
        let Values::Float(values) = &column.values else { return };
        self.folds.resize(self.selected.len(), Fold::default());
        let cells = ColumnValues::new(&column.rows, values);
        cells.for_each_run(&self.selected, |at, run, indices| {
            if statistic == Statistic::Count {
                self.touched.push(at);
            }
            let start_ns = self.starts_ns[run.rows.start];
            self.folds[at].set(statistic, start_ns, cells.values(indices)[0]);
        });
    }

    /// Hands all that is known of the field over, so that another may come.
    pub(super) fn hand_over(&mut self, field: FieldId, collector: &mut impl Collector) {
        for at in self.touched.drain(..) {
            let RowRun { entity, rows } = &self.selected[at];
            let fold = std::mem::take(&mut self.folds[at]);
            collector.add_hour(*entity, self.starts_ns[rows.start], field, &fold);
        }
    }
}
