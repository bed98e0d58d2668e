//! The series column, run-length encoded: the rows of an entity are neighbours.

use std::ops::Range;
use std::sync::OnceLock;

use crate::codec::Effort;
use crate::codec::bytes::{ByteReader, put_len};
use crate::codec::integer;
use crate::codec::simd::multiversioned;
use crate::model::batch::{NEW_SERIES_BASE, RowSet};
use crate::model::error::Result;

/// A binary search finds the run of each value if there are more runs per value than this.
const RUNS_PER_VALUE_MAX: usize = 16;

/// The series column of a table, as runs of equal series.
#[derive(Clone, Debug, Default)]
pub struct RunLengths {
    series: Vec<u32>,
    lengths: Vec<u32>,
    row_count: usize,
    /// The row after each run, computed when the first column with few values is read.
    ends: OnceLock<Vec<u32>>,
}

impl RunLengths {
    /// Groups equal neighbours into runs.
    ///
    /// Example: `[5, 5, 5, 7, 7]` is a run of three rows of series 5, then two rows of series 7.
    pub(super) fn of(series: &[u32]) -> Self {
        let row_count = series.len();
        if are_unlike(series, series.get(1..).unwrap_or_default()) {
            let lengths = vec![1; row_count];
            return Self { series: series.to_vec(), lengths, row_count, ..Self::default() };
        }
        let mut runs = Self { row_count, ..Self::default() };
        let mut rest = series;
        while let Some(&first) = rest.first() {
            let length = leading(first, rest);
            runs.series.push(first);
            runs.lengths.push(u32::try_from(length).expect("a block has fewer rows"));
            rest = &rest[length..];
        }
        runs
    }

    /// Returns the series of each run and the run's rows in the table. Neighbouring runs have
    /// different series.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let mut end = 0;
        self.series.iter().zip(&self.lengths).map(move |(&series, &length)| {
            let start = end;
            end += length as usize;
            (series, start..end)
        })
    }

    /// Number of runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Returns true if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The series of each row.
    #[must_use]
    pub fn expand(&self) -> Vec<u32> {
        if self.row_count == self.series.len() {
            return self.series.clone();
        }
        let mut series = Vec::with_capacity(self.row_count);
        for (&id, &length) in self.series.iter().zip(&self.lengths) {
            series.resize(series.len() + length as usize, id);
        }
        series
    }

    /// Number of rows of the table.
    pub(super) const fn row_count(&self) -> usize {
        self.row_count
    }

    /// Lengths of the runs. Each length is positive.
    pub(super) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Lengths of the runs of a column that has values only in `rows`. Runs without a value are
    /// left out.
    ///
    /// Example: with runs of lengths 3 and 2 and values in rows 1, 2 and 4, the lengths are 2 and
    /// 1.
    pub(super) fn lengths_within(&self, rows: &[u32]) -> Vec<u32> {
        if self.lengths.len() == self.row_count {
            // Each run has one row, so each row with a value is a run.
            return vec![1; rows.len()];
        }
        if rows.len() * RUNS_PER_VALUE_MAX < self.lengths.len() {
            let ends = self.ends();
            let end_of = |row: &u32| ends.get(ends.partition_point(|end| end <= row));
            let of_runs = rows.chunk_by(|row, next| end_of(row).is_none_or(|end| next < end));
            return of_runs.map(length_of).collect();
        }
        let mut lengths = Vec::with_capacity(self.lengths.len().min(rows.len()));
        let (mut end, mut left) = (0, rows);
        for &length in &self.lengths {
            end += length;
            let most = left.len().min(length as usize);
            let count = match left[..most] {
                // Most runs have a value in each of their rows.
                [.., last] if last < end => most,
                _ => left[..most].partition_point(|row| *row < end),
            };
            if count > 0 {
                lengths.push(length_of(&left[..count]));
            }
            left = &left[count..];
        }
        lengths
    }

    fn ends(&self) -> &[u32] {
        self.ends.get_or_init(|| {
            let after = |end: &mut u32, length: &u32| {
                *end += length;
                Some(*end)
            };
            self.lengths.iter().scan(0, after).collect()
        })
    }

    /// Lengths of the runs of a column with values in `rows`.
    pub(super) fn lengths_of(&self, rows: &RowSet) -> std::borrow::Cow<'_, [u32]> {
        match rows {
            RowSet::All => self.lengths().into(),
            RowSet::Some(rows) => self.lengths_within(rows).into(),
        }
    }

    pub(super) fn encode(&self, effort: Effort, out: &mut Vec<u8>) {
        let widen =
            |values: &[u32]| values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>();
        put_len(out, self.len());
        integer::encode_run(&widen(&self.series), effort, out);
        integer::encode_run(&widen(&self.lengths), effort, out);
    }

    /// Reads the series of `row_count` rows.
    pub(super) fn decode(input: &mut ByteReader<'_>, row_count: usize) -> Result<Self> {
        let run_count = input.len(row_count)?;
        let series = integer::decode_run(input, run_count, NEW_SERIES_BASE)?;
        let lengths = integer::decode_run(input, run_count, u32::MAX)?;
        input.check(are_unlike(&series, series.get(1..).unwrap_or_default()))?;
        input.check(sum_of_lengths(&lengths) == Some(row_count as u64))?;
        Ok(Self { series, lengths, row_count, ..Self::default() })
    }
}

fn length_of(rows: &[u32]) -> u32 {
    u32::try_from(rows.len()).expect("a block has fewer rows")
}

/// Number of elements at the start of `series` that equal `first`.
fn leading(first: u32, series: &[u32]) -> usize {
    let is_whole = |some: &&[u32; 16]| some.iter().fold(0, |bits, id| bits | (id ^ first)) == 0;
    let whole = series.as_chunks().0.iter().take_while(is_whole).count() * 16;
    whole + series[whole..].iter().take_while(|id| **id == first).count()
}

multiversioned! {
    /// Returns true if every element differs from its successor.
    fn are_unlike(series: &[u32], successors: &[u32]) -> bool {
        let mut alike = false;
        for (one, next) in series.iter().zip(successors) {
            alike |= one == next;
        }
        !alike
    }
}

multiversioned! {
    /// Returns the sum of the lengths, or `None` if a length is 0.
    fn sum_of_lengths(lengths: &[u32]) -> Option<u64> {
        let (mut sum, mut has_empty) = (0_u64, false);
        for length in lengths {
            sum = sum.wrapping_add(u64::from(*length));
            has_empty |= *length == 0;
        }
        (!has_empty).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number of `rows` in each run that has at least one, found by a separate search for each row.
    fn lengths_one_by_one(lengths: &[u32], rows: &[u32]) -> Vec<u32> {
        let runs = || (0_u32..).zip(lengths).flat_map(|(run, len)| vec![run; *len as usize]);
        let of_rows: Vec<u32> = rows.iter().map(|row| runs().nth(*row as usize).unwrap()).collect();
        of_rows.chunk_by(|a, b| a == b).map(length_of).collect()
    }

    proptest! {
        #[test]
        fn rows_with_a_value_are_counted_run_by_run(
            lengths in prop::collection::vec(prop_oneof![Just(1_u32), 1_u32..4, 1_u32..60], 1..120),
            dice in prop::collection::vec(0_u32..100, 120 * 60),
            percent in prop_oneof![0_u32..3, 0_u32..=100, Just(99)],
        ) {
            let series = (0_u32..).zip(&lengths).flat_map(|(id, len)| vec![id; *len as usize]);
            let runs = RunLengths::of(&series.collect::<Vec<_>>());
            let rows = (0..u32::try_from(runs.row_count()).unwrap()).zip(&dice);
            let rows: Vec<u32> =
                rows.filter(|(_, dice)| **dice < percent).map(|(row, _)| row).collect();
            prop_assert_eq!(runs.lengths_within(&rows), lengths_one_by_one(&lengths, &rows));
        }
    }

    #[test]
    fn gaps_shorten_runs_and_drop_empty_ones() {
        let runs = RunLengths::of(&[5, 5, 5, 7, 7, 9, 5]);
        assert_eq!(runs.iter().collect::<Vec<_>>(), [(5, 0..3), (7, 3..5), (9, 5..6), (5, 6..7)]);
        assert_eq!(runs.lengths_within(&[1, 2, 5, 6]), [2, 1, 1]);
        assert_eq!(runs.lengths_within(&[6]), [1]);
        assert_eq!(runs.lengths_within(&[]), [0; 0]);
        assert_eq!(RunLengths::of(&[5, 7, 5]).lengths_within(&[0, 2]), [1, 1]);
        let many = RunLengths::of(&(0..100).flat_map(|id| [id, id, id]).collect::<Vec<_>>());
        assert_eq!(many.lengths_within(&[3, 5, 6, 299]), [2, 1, 1]);
        assert_eq!(runs.expand(), [5, 5, 5, 7, 7, 9, 5]);
    }
}
