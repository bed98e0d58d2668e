//! How selected rows are handed over: runs of an entity's rows, then the values of each column.

use std::ops::Range;

use crate::aggregate::{Aggregation, Fold};
use crate::batch::Rows;

/// Consecutive rows of a table that belong to one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the entity in the request.
    pub entity: u32,
    /// The rows.
    pub rows: Range<usize>,
}

/// The rows of a table that are wanted.
pub struct Picked<'a> {
    /// In write order within each entity.
    pub runs: Vec<Run>,
    /// The times of all rows of the table.
    pub times_ns: &'a [i64],
}

impl<'a> Picked<'a> {
    /// Those rows of `runs` whose time lies in `wanted_ns`.
    pub(super) fn new(runs: &[Run], times_ns: &'a [i64], wanted_ns: &Range<i64>) -> Self {
        let mut picked = Vec::with_capacity(runs.len());
        for Run { entity, rows } in runs {
            let mut start = rows.start;
            for stretch in times_ns[rows.clone()]
                .chunk_by(|a, b| wanted_ns.contains(a) == wanted_ns.contains(b))
            {
                let rows = start..start + stretch.len();
                start = rows.end;
                if wanted_ns.contains(&stretch[0]) {
                    picked.push(Run { entity: *entity, rows });
                }
            }
        }
        Self { runs: picked, times_ns }
    }
}

/// The values of a column of numbers, which some rows may lack.
pub struct Cells<'a> {
    rows: &'a Rows,
    values: &'a [f64],
}

impl<'a> Cells<'a> {
    /// The `values` of a column in these `rows`.
    pub(super) const fn new(rows: &'a Rows, values: &'a [f64]) -> Self {
        Self { rows, values }
    }

    /// The values in `rows`, and the row of each by its index among them.
    pub fn within(&self, rows: &Range<usize>) -> (&'a [f64], impl Fn(usize) -> usize) {
        let present = match self.rows {
            Rows::All => None,
            Rows::Some(present) => Some(present.as_slice()),
        };
        let places = match present {
            None => rows.clone(),
            Some(present) => {
                let place = |row: usize| present.partition_point(|other| (*other as usize) < row);
                place(rows.start)..place(rows.end)
            }
        };
        let first = places.start;
        let row_of = move |at: usize| match present {
            None => first + at,
            Some(present) => present[first + at] as usize,
        };
        (&self.values[places], row_of)
    }
}

/// Takes the selected records, in write order within each entity, table by table and in each column
/// by column.
pub trait Collector {
    /// Where the values of announced records go.
    type Marks;

    /// Records of a table; the answer is handed back with each column of their values.
    fn records(&mut self, picked: &Picked<'_>) -> Self::Marks;

    /// The values of those records in one channel.
    fn values(
        &mut self,
        picked: &Picked<'_>,
        marks: &Self::Marks,
        channel: usize,
        cells: &Cells<'_>,
    );

    /// For which aggregation whole hours will do; `None` where records are wanted.
    fn takes_hours(&self) -> Option<Aggregation> {
        None
    }

    /// All samples of an entity's channel in the hour from `start_ns` on that one block has; only
    /// called where [`Self::takes_hours`] says for what.
    fn hour(&mut self, _entity: u32, _start_ns: i64, _channel: usize, _fold: &Fold) {}
}

/// Hands `collector` a table of rows of entity 0, each a time and a value or none in each channel.
#[cfg(test)]
pub(super) fn offer<const CHANNELS: usize>(
    collector: &mut impl Collector,
    rows: &[(i64, [Option<f64>; CHANNELS])],
) {
    let times_ns: Vec<i64> = rows.iter().map(|(time_ns, _)| *time_ns).collect();
    let runs = [Run { entity: 0, rows: 0..rows.len() }];
    let picked = Picked::new(&runs, &times_ns, &(i64::MIN..i64::MAX));
    let marks = collector.records(&picked);
    for channel in 0..CHANNELS {
        let present = (0..).zip(rows).filter_map(|(at, (_, cells))| Some((at, cells[channel]?)));
        let (rows, values): (Vec<u32>, Vec<f64>) = present.unzip();
        let rows = if rows.len() == times_ns.len() { Rows::All } else { Rows::Some(rows) };
        collector.values(&picked, &marks, channel, &Cells { rows: &rows, values: &values });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_outside_the_wanted_times_part_a_run() {
        let runs = [Run { entity: 3, rows: 1..5 }, Run { entity: 1, rows: 5..6 }];
        let picked = Picked::new(&runs, &[5, 5, 9, 4, 6, 7], &(4..7));
        let [first, second] = &picked.runs[..] else { panic!("{:?}", picked.runs) };
        assert_eq!(first, &Run { entity: 3, rows: 1..2 });
        assert_eq!(second, &Run { entity: 3, rows: 3..5 });
    }

    #[test]
    fn cells_know_their_rows() {
        let (dense, sparse) = (Rows::All, Rows::Some(vec![0, 2, 5]));
        for (rows, values, expected) in [
            (&dense, &[1.0, 2.0, 3.0, 4.0][..], &[(1, 2.0), (2, 3.0)][..]),
            (&sparse, &[1.0, 2.0, 3.0], &[(2, 2.0)]),
        ] {
            let cells = Cells { rows, values };
            let (values, row_of) = cells.within(&(1..3));
            let found: Vec<(usize, f64)> =
                values.iter().enumerate().map(|(at, value)| (row_of(at), *value)).collect();
            assert_eq!(found, expected);
        }
    }
}
