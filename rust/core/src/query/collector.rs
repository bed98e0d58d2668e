//! Hands over selected rows: first the runs of an entity's rows, then the values of each column.

use std::ops::Range;

use super::search::count_before;
use crate::model::aggregate::Statistic;
use crate::model::batch::RowSet;
use crate::model::fold::Fold;
use crate::model::names::FieldId;
use crate::storage::tombstone::HiddenTimes;

/// Consecutive rows of a table that belong to one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRun {
    /// Index of the entity in the request.
    pub entity: u32,
    /// The rows.
    pub rows: Range<usize>,
}

/// Consecutive rows of a table.
pub trait RowRange {
    /// The rows.
    fn rows(&self) -> &Range<usize>;
}

impl RowRange for RowRun {
    fn rows(&self) -> &Range<usize> {
        &self.rows
    }
}

/// The selected rows of a table.
pub struct SelectedRows<'a> {
    /// Runs in write order within each entity.
    pub runs: Vec<RowRun>,
    /// Times of all rows of the table, in nanoseconds since 1970.
    pub times_ns: &'a [i64],
}

impl<'a> SelectedRows<'a> {
    /// Selects the rows of `runs` whose time is in `wanted_ns`.
    pub(super) fn new(runs: &[RowRun], times_ns: &'a [i64], wanted_ns: &Range<i64>) -> Self {
        let runs = stretches(runs, times_ns, |time_ns| wanted_ns.contains(&time_ns));
        Self { runs, times_ns }
    }

    /// Removes the rows whose times are hidden for their entity.
    pub(super) fn hide(&mut self, hidden_of: impl Fn(u32) -> HiddenTimes) {
        let mut left = Vec::with_capacity(self.runs.len());
        for runs in self.runs.chunk_by(|a, b| a.entity == b.entity) {
            let hidden = hidden_of(runs[0].entity);
            if hidden.is_empty() {
                left.extend_from_slice(runs);
            } else {
                left.extend(stretches(runs, self.times_ns, |time_ns| !hidden.contains(time_ns)));
            }
        }
        self.runs = left;
    }
}

/// Returns the rows of `runs` whose times are wanted.
fn stretches(runs: &[RowRun], times_ns: &[i64], is_wanted: impl Fn(i64) -> bool) -> Vec<RowRun> {
    let mut wanted = Vec::with_capacity(runs.len());
    for RowRun { entity, rows } in runs {
        let is_wanted = |time_ns: &i64| is_wanted(*time_ns);
        let of_run = &times_ns[rows.clone()];
        // Most runs are wanted whole. Without a branch, many times are looked at together.
        if !of_run.is_empty() && of_run.iter().fold(true, |all, time_ns| all & is_wanted(time_ns)) {
            wanted.push(RowRun { entity: *entity, rows: rows.clone() });
            continue;
        }
        let mut start = rows.start;
        for stretch in of_run.chunk_by(|a, b| is_wanted(a) == is_wanted(b)) {
            let rows = start..start + stretch.len();
            start = rows.end;
            if is_wanted(&stretch[0]) {
                wanted.push(RowRun { entity: *entity, rows });
            }
        }
    }
    wanted
}

/// The values of a column of numbers. Some rows may have no value.
pub struct ColumnValues<'a> {
    rows: &'a RowSet,
    values: &'a [f64],
}

impl<'a> ColumnValues<'a> {
    /// Combines the `values` of a column with their `rows`.
    pub(super) const fn new(rows: &'a RowSet, values: &'a [f64]) -> Self {
        Self { rows, values }
    }

    /// Returns true if each row has a value.
    #[must_use]
    pub const fn is_dense(&self) -> bool {
        matches!(self.rows, RowSet::All)
    }

    /// Visits each of `runs` in which the column has values. The runs ascend without overlap.
    /// `visit` gets the index of the run, the run, and the indices of the values. If the values are
    /// few, the cost grows with the values, not with the runs.
    #[inline]
    pub fn for_each_run<R: RowRange>(
        &self,
        runs: &[R],
        mut visit: impl FnMut(usize, &R, Range<usize>),
    ) {
        let RowSet::Some(present) = self.rows else {
            for (at, run) in runs.iter().enumerate() {
                visit(at, run, run.rows().clone());
            }
            return;
        };
        let (mut at, mut index) = (0, 0);
        while let Some(row) = present.get(index).map(|row| *row as usize) {
            at += count_before(&runs[at..], |run| run.rows().end <= row);
            let Some(run) = runs.get(at) else { return };
            let rows = run.rows();
            let start = index + count_before(&present[index..], |row| (*row as usize) < rows.start);
            // A run has at most as many values as rows.
            let rest = &present[start..present.len().min(start + rows.len())];
            index = start + count_before(rest, |row| (*row as usize) < rows.end);
            if start < index {
                visit(at, run, start..index);
                at += 1;
            }
        }
    }

    /// Returns the values at these indices.
    #[must_use]
    pub fn values(&self, indices: Range<usize>) -> &'a [f64] {
        &self.values[indices]
    }

    /// Returns the row of the value at an index.
    #[must_use]
    pub fn row_at(&self, index: usize) -> usize {
        self.rows.row_at(index)
    }
}

/// Takes the selected records in write order within each entity: table by table, and within a table
/// column by column.
pub trait Collector {
    /// The targets of the values of announced records.
    type Targets;

    /// Takes the records of a table. The caller passes the result back with each column of their
    /// values.
    fn records(&mut self, selected: &SelectedRows<'_>) -> Self::Targets;

    /// Takes the values of these records in one field.
    fn values(
        &mut self,
        selected: &SelectedRows<'_>,
        targets: &Self::Targets,
        field: FieldId,
        cells: &ColumnValues<'_>,
    );

    /// Returns true if the collector holds so much that the answer ends before further records.
    fn is_full(&self) -> bool;

    /// Returns the statistics that are needed of whole hours, or `None` if the collector needs
    /// records.
    fn hourly_statistics(&self) -> Option<&'static [Statistic]> {
        None
    }

    /// Takes all samples that one block has of an entity's field in the hour from `start_ns` on.
    /// Called only if [`Self::hourly_statistics`] returns statistics.
    fn add_hour(&mut self, _entity: u32, _start_ns: i64, _field: FieldId, _fold: &Fold) {}

    /// Takes a kept hour of an entity's field. It replaces all samples of the hour that were taken
    /// so far. Called only if [`Self::hourly_statistics`] returns statistics.
    fn set_hour(&mut self, _entity: u32, _start_ns: i64, _field: FieldId, _fold: &Fold) {}
}

/// Hands `collector` a table of rows of entity 0. Each row has a time, and a value or `None` for
/// each field from 0 on.
#[cfg(test)]
pub(super) fn offer<const FIELDS: usize>(
    collector: &mut impl Collector,
    rows: &[(i64, [Option<f64>; FIELDS])],
) {
    let times_ns: Vec<i64> = rows.iter().map(|(time_ns, _)| *time_ns).collect();
    let runs = [RowRun { entity: 0, rows: 0..rows.len() }];
    let selected = SelectedRows::new(&runs, &times_ns, &(i64::MIN..i64::MAX));
    let targets = collector.records(&selected);
    for (field, at) in (0..).zip(0..FIELDS) {
        let present = (0..).zip(rows).filter_map(|(row, (_, cells))| Some((row, cells[at]?)));
        let (rows, values): (Vec<u32>, Vec<f64>) = present.unzip();
        let rows = if rows.len() == times_ns.len() { RowSet::All } else { RowSet::Some(rows) };
        collector.values(
            &selected,
            &targets,
            field,
            &ColumnValues { rows: &rows, values: &values },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_outside_the_wanted_times_part_a_run() {
        let runs = [RowRun { entity: 3, rows: 1..5 }, RowRun { entity: 1, rows: 5..6 }];
        let selected = SelectedRows::new(&runs, &[5, 5, 9, 4, 6, 7], &(4..7));
        let [first, second] = &selected.runs[..] else { panic!("{:?}", selected.runs) };
        assert_eq!(first, &RowRun { entity: 3, rows: 1..2 });
        assert_eq!(second, &RowRun { entity: 3, rows: 3..5 });
    }

    #[test]
    fn a_run_is_kept_whole_if_all_its_times_are_wanted_and_an_empty_run_is_not_kept() {
        let runs = [0..0, 1..3, 3..4].map(|rows| RowRun { entity: 0, rows });
        let selected = SelectedRows::new(&runs, &[5, 5, 6, 7], &(4..7));
        assert_eq!(selected.runs, [RowRun { entity: 0, rows: 1..3 }]);
    }

    #[test]
    fn cells_are_found_within_runs() {
        let runs = [0..0, 1..3, 4..5, 5..9].map(|rows| RowRun { entity: 0, rows });
        for (rows, values, expected) in [
            (RowSet::All, 9, vec![(0, 0..0), (1, 1..3), (2, 4..5), (3, 5..9)]),
            (RowSet::Some(vec![0, 2, 3, 5, 6, 9]), 6, vec![(1, 1..2), (3, 3..5)]),
            (RowSet::Some(vec![3, 9]), 2, vec![]),
            (RowSet::Some(vec![4]), 1, vec![(2, 0..1)]),
            (RowSet::Some(vec![]), 0, vec![]),
        ] {
            let values = vec![1.0; values];
            let cells = ColumnValues { rows: &rows, values: &values };
            let mut found = Vec::new();
            cells.for_each_run(&runs, |at, _, indices| found.push((at, indices)));
            assert_eq!(found, expected, "{rows:?}");
        }
    }
}
