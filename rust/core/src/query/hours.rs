//! Assembles the hours of one field after another from their statistics.

use super::collector::{ColumnValues, RowRun};
use crate::model::aggregate::Statistic;
use crate::model::batch::{Column, Values};
use crate::model::fold::Fold;

/// Selected rows of statistics, and their folds of one field.
pub(super) struct Hours {
    selected: Vec<RowRun>,
    /// Start of the hour of each row of the table.
    starts_ns: Vec<i64>,
    /// Fold of each selected row.
    folds: Vec<Fold>,
    /// Indexes into `folds` of the rows that have a fold.
    touched: Vec<usize>,
}

impl Hours {
    pub(super) fn new(selected: Vec<RowRun>, starts_ns: Vec<i64>) -> Self {
        Self { selected, starts_ns, folds: Vec::new(), touched: Vec::new() }
    }

    /// Takes the values of one statistic of the field.
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

    /// Hands all folds of a field to `take`, each with its entity and the start of its hour, and
    /// removes them, so that another field may follow.
    pub(super) fn hand_over(&mut self, mut take: impl FnMut(u32, i64, &Fold)) {
        for at in self.touched.drain(..) {
            let RowRun { entity, rows } = &self.selected[at];
            let fold = std::mem::take(&mut self.folds[at]);
            take(*entity, self.starts_ns[rows.start], &fold);
        }
    }
}
