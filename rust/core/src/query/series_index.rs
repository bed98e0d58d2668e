//! Finds the rows of some series in a decoded table without a look at all rows.

use std::ops::Range;

use super::search::count_before;
use crate::model::batch::Table;
use crate::model::names::SeriesId;

/// The runs of equal series in one table.
pub struct SeriesIndex {
    /// Series and first row of each run.
    runs: Vec<(SeriesId, u32)>,
    row_count: usize,
    /// True if the series ascend, so that each series has one run.
    is_sorted: bool,
}

impl SeriesIndex {
    /// Finds the runs of `table`.
    ///
    /// # Panics
    /// Panics if the table has 2^32 rows or more.
    #[must_use]
    pub fn new(table: &Table) -> Self {
        let mut runs = Vec::new();
        let mut start = 0;
        for run in table.series.chunk_by(|a, b| a == b) {
            runs.push((run[0], u32::try_from(start).expect("a table has fewer than 2^32 rows")));
            start += run.len();
        }
        let is_sorted = runs.is_sorted_by(|a, b| a.0 < b.0);
        Self { runs, row_count: table.row_count(), is_sorted }
    }

    /// Returns the bytes of memory that the index takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.runs.as_slice())
    }

    /// Visits the runs of the `wanted` series in order of their rows. `wanted` ascends by series.
    /// Each visit gets the value that `wanted` has for the series.
    pub(super) fn visit<T: Copy>(
        &self,
        wanted: &[(SeriesId, T)],
        mut visit: impl FnMut(T, Range<usize>),
    ) {
        if self.is_sorted {
            let mut from = 0;
            for (series, of) in wanted {
                from += count_before(&self.runs[from..], |run| run.0 < *series);
                if self.runs.get(from).is_some_and(|run| run.0 == *series) {
                    visit(*of, self.rows(from));
                }
            }
            return;
        }
        for (at, (series, _)) in self.runs.iter().enumerate() {
            if let Ok(found) = wanted.binary_search_by_key(series, |wanted| wanted.0) {
                visit(wanted[found].1, self.rows(at));
            }
        }
    }

    fn rows(&self, at: usize) -> Range<usize> {
        let end = self.runs.get(at + 1).map_or(self.row_count, |next| next.1 as usize);
        self.runs[at].1 as usize..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_in_order_whether_series_ascend_or_not() {
        for series in [vec![1, 1, 4, 7, 7, 7], vec![7, 1, 1, 7, 4, 1], vec![]] {
            let table = Table { times_ns: vec![0; series.len()], series, columns: Vec::new() };
            let mut found = Vec::new();
            let wanted = [(0, 'x'), (1, 'a'), (5, 'y'), (7, 'b'), (9, 'z')];
            SeriesIndex::new(&table).visit(&wanted, |of, rows| {
                found.extend(rows.map(|row| (row, of)));
            });
            let expected = table.series.iter().enumerate().filter_map(|(row, series)| {
                Some((row, wanted.iter().find(|wanted| wanted.0 == *series)?.1))
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{:?}", table.series);
        }
    }
}
