//! Finds the rows of some series in a decoded table without a look at all rows.

use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::search::count_before;
use crate::model::batch::Table;
use crate::model::names::SeriesId;

/// The stretch of each series in one table. The rows of an entity are neighbours in most tables, so
/// a stretch has few rows of other series, however many series an entity has.
pub struct SeriesIndex {
    /// In order of their series.
    stretches: Vec<SeriesStretch>,
}

/// The rows from the first to the last row of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeriesStretch {
    series: SeriesId,
    start: u32,
    end: u32,
    /// True if the stretch has rows of other series.
    is_shared: bool,
}

/// A range of rows, and the series of all of them if it is one wanted series.
pub(super) type WantedStretch = (Range<usize>, Option<SeriesId>);

impl SeriesIndex {
    /// Finds the stretches of `table`.
    ///
    /// # Panics
    /// Panics if the table has 2^32 rows or more.
    #[must_use]
    pub fn new(table: &Table) -> Self {
        let mut known: HashMap<SeriesId, usize, RandomState> = HashMap::default();
        let mut stretches: Vec<SeriesStretch> = Vec::new();
        let mut start = 0;
        for run in table.series.chunk_by(|a, b| a == b) {
            let rows = u32::try_from(run.len()).expect("a table has fewer than 2^32 rows");
            let end = start + rows;
            let at = *known.entry(run[0]).or_insert(stretches.len());
            if let Some(stretch) = stretches.get_mut(at) {
                (stretch.end, stretch.is_shared) = (end, true);
            } else {
                stretches.push(SeriesStretch { series: run[0], start, end, is_shared: false });
            }
            start = end;
        }
        stretches.sort_unstable_by_key(|stretch| stretch.series);
        Self { stretches }
    }

    /// Returns the bytes of memory that the index takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.stretches.as_slice())
    }

    /// Returns ranges that have all rows of the `wanted` series, which ascend. The ranges ascend
    /// without overlap.
    pub(super) fn stretches<T>(&self, wanted: &[(SeriesId, T)]) -> Vec<WantedStretch> {
        let mut found: Vec<&SeriesStretch> = Vec::new();
        let mut from = 0;
        for (series, _) in wanted {
            from += count_before(&self.stretches[from..], |stretch| stretch.series < *series);
            found.extend(self.stretches.get(from).filter(|stretch| stretch.series == *series));
        }
        found.sort_unstable_by_key(|stretch| stretch.start);
        let mut merged: Vec<WantedStretch> = Vec::with_capacity(found.len());
        for stretch in found {
            let (start, end) = (stretch.start as usize, stretch.end as usize);
            match merged.last_mut() {
                Some((rows, series)) if start < rows.end => {
                    (rows.end, *series) = (rows.end.max(end), None);
                }
                _ => merged.push((start..end, (!stretch.is_shared).then_some(stretch.series))),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(series: &[SeriesId]) -> SeriesIndex {
        let (series, times_ns) = (series.to_vec(), vec![0; series.len()]);
        SeriesIndex::new(&Table { series, times_ns, columns: Vec::new() })
    }

    #[test]
    fn rows_of_wanted_series_are_found_in_order_whether_series_are_neighbours_or_not() {
        let wanted = [0, 1, 5, 7, 9].map(|series| (series, ()));
        for (series, expected) in [
            (vec![1, 1, 4, 7, 7, 7], vec![(0..2, Some(1)), (3..6, Some(7))]),
            (vec![7, 7, 4, 4, 1], vec![(0..2, Some(7)), (4..5, Some(1))]),
            (vec![4, 7, 4, 7, 3, 1], vec![(1..4, None), (5..6, Some(1))]),
            (vec![7, 1, 1, 7, 4, 1, 9], vec![(0..6, None), (6..7, Some(9))]),
            (vec![7, 1, 7, 1, 4, 4], vec![(0..4, None)]),
            (vec![4, 4], vec![]),
            (vec![], vec![]),
        ] {
            assert_eq!(index(&series).stretches(&wanted), expected, "{series:?}");
        }
    }
}
