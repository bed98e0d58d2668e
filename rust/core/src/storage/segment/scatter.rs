//! Sorts rows of several spans if few rows of a series lie next to each other. It counts the rows
//! of each entity, and then moves each value, column by column, to the place of its row.
//!
//! Reads are sequential, and each write continues after the last row of its entity. So a value
//! takes a few instructions, however many spans there are.
//!
//! The sorted rows come in pieces that fit a core's cache. A round sorts tens of megabytes, and the
//! kernel takes longer to clear so much fresh memory than the rows take to be moved.

use super::gather;
use super::moved::{MovedField, SortedPiece};
use super::places::RowPlaces;
use super::representatives::Representatives;
use super::span::{RowSpan, row_number};
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::model::names::SeriesId;

/// Rows of some spans of one measurement whose places are known: by representative series and time.
/// Rows that are equal in both stay in the order of the spans.
pub(super) struct Scatter<'t> {
    targets: RowPlaces,
    /// Series of the rows of each span.
    series: Vec<&'t [SeriesId]>,
    fields: Vec<MovedField<'t>>,
    /// A piece has two to this power rows.
    piece_bits: u32,
    /// Rows grouped by the piece that they go to, ascending in each group.
    rows: Vec<u32>,
}

impl<'t> Scatter<'t> {
    /// Returns `None` if the representative series are too far apart to be counted. A piece has
    /// `2^piece_bits` rows, the last one perhaps fewer.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
    pub(super) fn of(
        spans: &[RowSpan<'t>],
        representatives: &Representatives,
        piece_bits: u32,
    ) -> Result<Option<Self>> {
        let Some(targets) = RowPlaces::of(spans, representatives)? else { return Ok(None) };
        let columns = gather::sources(spans);
        let fields = columns.chunk_by(|a, b| a.column.field == b.column.field);
        let fields =
            fields.filter_map(|sources| MovedField::of(spans, sources, &targets)).collect();
        let series = spans.iter().map(|span| &span.table.series[span.rows.clone()]).collect();
        let rows = targets.rows_by_piece(piece_bits);
        Ok(Some(Self { targets, series, fields, piece_bits, rows }))
    }

    /// Returns the sorted rows, piece by piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Table> {
        let row_count = self.rows.len();
        let starts = (0..row_count).step_by(1 << self.piece_bits);
        starts.map(move |start| self.table(start, row_count.min(start + (1 << self.piece_bits))))
    }

    fn table(&self, start: usize, end: usize) -> Table {
        let piece = self.piece(start, end);
        let columns = self.fields.iter().filter_map(|field| field.column(&piece));
        Table {
            series: piece.all(&self.series),
            times_ns: self.targets.times_ns[start..end].to_vec(),
            columns: columns.collect(),
        }
    }

    fn piece(&self, start: usize, end: usize) -> SortedPiece<'_> {
        let RowPlaces { of_rows, starts, .. } = &self.targets;
        let rows = &self.rows[start..end];
        let place = |row: &u32| of_rows[*row as usize] - row_number(start);
        let places = rows.iter().map(place).collect();
        let (mut parts, mut rest) = (Vec::new(), rows);
        for (span, bounds) in starts.windows(2).enumerate() {
            let Some(first) = rest.first() else { break };
            if (*first as usize) < bounds[1] {
                let count = rest.partition_point(|row| (*row as usize) < bounds[1]);
                let (of_span, behind) = rest.split_at(count);
                parts.push((span, bounds[0], of_span));
                rest = behind;
            }
        }
        SortedPiece { start, row_count: end - start, parts, places }
    }
}
