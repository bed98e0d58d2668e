//! Neighbouring rows of tables.

use std::ops::Range;

use crate::model::batch::Table;
use crate::model::names::SeriesId;

/// Some neighbouring rows of a table.
#[derive(Clone)]
pub struct RowSpan<'t> {
    pub(super) table: &'t Table,
    pub(super) rows: Range<usize>,
}

impl<'t> RowSpan<'t> {
    /// Returns all rows of `table`.
    #[must_use]
    pub fn whole(table: &'t Table) -> Self {
        Self { table, rows: 0..table.row_count() }
    }
}

/// Neighbouring rows of one span and one entity, which are moved together.
#[derive(Clone, Copy)]
pub(super) struct SpanRun {
    pub(super) representative: SeriesId,
    /// Index of the span.
    pub(super) span: u32,
    /// First row of the run, counted in the table of the span.
    pub(super) start: u32,
    pub(super) end: u32,
}

impl SpanRun {
    pub(super) const fn rows(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Converts a row to the number type that blocks use.
pub(super) fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("a table has fewer than 2^32 rows")
}
