//! Values of rows that lie in several spans, moved to the places that the rows have in a piece of the
//! sorted table.

use super::gather::{ROWS_PER_VALUE_MAX, SpanColumn};
use super::places::RowPlaces;
use super::span::{RowSpan, row_number};
use crate::model::batch::{Column, RowSet, Values};
use crate::model::names::FieldId;
use crate::model::prefetch::prefetch_line;

/// Number of parts between the part that is moved and the part whose memory is asked for.
const PARTS_AHEAD: usize = 2;
/// Bytes that a processor takes from memory at a time.
const LINE_BYTES: usize = 64;
/// Lines that are asked for at most: a page. Behind them the processor guesses what comes next.
const LINES_MAX: usize = 64;

/// Asks for the memory of `items`, which are moved soon. A part has few rows, and each part lies
/// elsewhere. So without a request the processor waits for the memory of every part.
#[inline]
fn prefetch<T>(items: Option<&[T]>) {
    let items = items.unwrap_or_default();
    let lines = items.iter().step_by((LINE_BYTES / size_of::<T>()).max(1));
    lines.take(LINES_MAX).chain(items.last()).for_each(prefetch_line);
}

/// Values of one field, by type.
pub(super) enum MovedField<'t> {
    Float(FieldId, MovedCells<'t, f64>),
    Bool(FieldId, MovedCells<'t, bool>),
    Text(FieldId, MovedCells<'t, Box<str>>),
}

/// Values of one field.
pub(super) enum MovedCells<'t, T> {
    /// Every row has a value: the values of each span.
    All(Vec<&'t [T]>),
    /// Many rows have a value: the values of each span, and the rows that have them.
    Many(Vec<Option<(&'t [T], PresentRows)>>),
    /// Few rows have a value: the places of these rows, ascending, with their values.
    Few(Vec<(u32, &'t T)>),
}

/// Tells for each row of a span whether it has a value, and which.
pub(super) enum PresentRows {
    All,
    /// For each eight rows a bit each, and the number of values before them.
    Some(Vec<(u8, u32)>),
}

/// The rows of a piece.
pub(super) struct SortedPiece<'a> {
    pub(super) start: usize,
    pub(super) row_count: usize,
    /// For each span with rows in the piece: the span, the number of rows before it, and its rows.
    pub(super) parts: Vec<(usize, usize, &'a [u32])>,
    /// Places of these rows in the piece.
    pub(super) places: Vec<u32>,
}

impl SortedPiece<'_> {
    /// Moves the items of all rows, given span by span, to the places of their rows.
    pub(super) fn all<T: Clone + Default>(&self, of_spans: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::default(); self.row_count];
        let mut places = self.places.iter();
        for (at, (span, before, rows)) in self.parts.iter().enumerate() {
            if let Some((span, first, last)) = self.ends_of(at + PARTS_AHEAD) {
                prefetch(of_spans[span].get(first..=last));
            }
            let items = of_spans[*span];
            for (row, place) in rows.iter().zip(&mut places) {
                out[*place as usize] = items[*row as usize - before].clone();
            }
        }
        out
    }

    /// Returns the span of a part, and the first and last of its rows, counted in the span.
    #[inline]
    fn ends_of(&self, part: usize) -> Option<(usize, usize, usize)> {
        let (span, before, rows) = self.parts.get(part)?;
        Some((*span, *rows.first()? as usize - before, *rows.last()? as usize - before))
    }

    /// Returns the rows of the piece that have a value, and their values.
    fn many<T: Clone + Default>(
        &self,
        of_spans: &[Option<(&[T], PresentRows)>],
    ) -> (Vec<u32>, Vec<T>) {
        let mut out = vec![T::default(); self.row_count];
        let mut has_value = vec![false; self.row_count];
        let mut places = self.places.as_slice();
        for (at, (span, before, rows)) in self.parts.iter().enumerate() {
            if let Some((span, first, last)) = self.ends_of(at + 2 * PARTS_AHEAD)
                && let Some((_, PresentRows::Some(eights))) = &of_spans[span]
            {
                prefetch(eights.get(first / 8..=last / 8));
            }
            if let Some((span, first, last)) = self.ends_of(at + PARTS_AHEAD)
                && let Some((values, present)) = &of_spans[span]
            {
                let start = present.count_before(first);
                let end = values.len().min(start + last - first + 1);
                prefetch(values.get(start..end));
            }
            let (of_part, behind) = places.split_at(rows.len());
            places = behind;
            let Some((values, present)) = &of_spans[*span] else { continue };
            for (row, place) in rows.iter().zip(of_part) {
                if let Some(index) = present.index_of(*row as usize - before) {
                    out[*place as usize] = values[index].clone();
                    has_value[*place as usize] = true;
                }
            }
        }
        // Each row is written down, and the next row overwrites it if it has no value.
        let mut rows = vec![0; self.row_count];
        let mut kept = 0;
        for (row, has_value) in has_value.into_iter().enumerate() {
            rows[kept] = row_number(row);
            out.swap(kept, row);
            kept += usize::from(has_value);
        }
        rows.truncate(kept);
        out.truncate(kept);
        (rows, out)
    }

    fn few<T: Clone>(&self, cells: &[(u32, &T)]) -> (Vec<u32>, Vec<T>) {
        let index = |row: usize| cells.partition_point(|(place, _)| (*place as usize) < row);
        let of_piece = &cells[index(self.start)..index(self.start + self.row_count)];
        let row = |place: &u32| place - row_number(self.start);
        of_piece.iter().map(|(place, value)| (row(place), (*value).clone())).unzip()
    }

    fn cells<T: Clone + Default>(&self, cells: &MovedCells<'_, T>) -> (RowSet, Vec<T>) {
        let (rows, values) = match cells {
            MovedCells::All(of_spans) => return (RowSet::All, self.all(of_spans)),
            MovedCells::Many(of_spans) => self.many(of_spans),
            MovedCells::Few(cells) => self.few(cells),
        };
        (if rows.len() == self.row_count { RowSet::All } else { RowSet::Some(rows) }, values)
    }
}

impl PresentRows {
    /// `present` are the rows of a table that have a value. The span begins at row `start` and has
    /// `row_count` rows.
    fn of(present: &[u32], start: usize, row_count: usize) -> Self {
        if present.len() == row_count {
            return Self::All;
        }
        let mut eights = vec![(0_u8, 0_u32); row_count.div_ceil(8)];
        for row in present {
            let row = *row as usize - start;
            eights[row / 8].0 |= 1 << (row % 8);
        }
        let mut before = 0;
        for (bits, count) in &mut eights {
            *count = before;
            before += u32::from(ONES[usize::from(*bits)]);
        }
        Self::Some(eights)
    }

    /// Returns about how many rows before `row`, counted in its span, have a value.
    #[inline]
    fn count_before(&self, row: usize) -> usize {
        match self {
            Self::All => row,
            Self::Some(eights) => eights[row / 8].1 as usize,
        }
    }

    /// Returns the index of the value of a row, counted in its span.
    #[inline]
    fn index_of(&self, row: usize) -> Option<usize> {
        let Self::Some(eights) = self else { return Some(row) };
        let (bits, before) = eights[row / 8];
        let bit = 1_u8 << (row % 8);
        let of_eight = ONES[usize::from(bits & (bit - 1))];
        (bits & bit != 0).then(|| before as usize + usize::from(of_eight))
    }
}

/// Number of set bits of each byte. Processors without an instruction for it take longer.
static ONES: [u8; 256] = ones();

const fn ones() -> [u8; 256] {
    let mut ones = [0; 256];
    let mut byte = 1;
    while byte < ones.len() {
        ones[byte] = ones[byte / 2] + (byte % 2).to_le_bytes()[0];
        byte += 1;
    }
    ones
}

impl<'t> MovedField<'t> {
    /// Returns the field of some columns, or `None` if no span has a value of the field.
    pub(super) fn of(
        spans: &[RowSpan<'t>],
        sources: &[SpanColumn<'t>],
        targets: &RowPlaces,
    ) -> Option<Self> {
        let first = sources.first()?.column;
        // A field id keeps its type for ever, so the type of the first column is the type of all.
        match first.values {
            Values::Float(_) => {
                let cells = MovedCells::of(spans, sources, targets, |values| match values {
                    Values::Float(values) => values,
                    _ => &[],
                });
                Some(Self::Float(first.field, cells?))
            }
            Values::Bool(_) => {
                let cells = MovedCells::of(spans, sources, targets, |values| match values {
                    Values::Bool(values) => values,
                    _ => &[],
                });
                Some(Self::Bool(first.field, cells?))
            }
            Values::Text(_) => {
                let cells = MovedCells::of(spans, sources, targets, |values| match values {
                    Values::Text(values) => values,
                    _ => &[],
                });
                Some(Self::Text(first.field, cells?))
            }
        }
    }

    /// Returns the column of a piece, or `None` if no row of the piece has a value.
    pub(super) fn column(&self, piece: &SortedPiece<'_>) -> Option<Column> {
        let (field, (rows, values)) = match self {
            Self::Float(field, cells) => {
                let (rows, values) = piece.cells(cells);
                (*field, (rows, Values::Float(values)))
            }
            Self::Bool(field, cells) => {
                let (rows, values) = piece.cells(cells);
                (*field, (rows, Values::Bool(values)))
            }
            Self::Text(field, cells) => {
                let (rows, values) = piece.cells(cells);
                (*field, (rows, Values::Text(values)))
            }
        };
        (!values.is_empty()).then_some(Column { field, rows, values })
    }
}

impl<'t, T> MovedCells<'t, T> {
    /// Returns the values of some columns of one field, or `None` if there are none.
    fn of(
        spans: &[RowSpan<'t>],
        sources: &[SpanColumn<'t>],
        targets: &RowPlaces,
        typed: impl Fn(&'t Values) -> &'t [T],
    ) -> Option<Self> {
        let of_source = |source: &SpanColumn<'t>| {
            let indices = source.column.rows.within(&spans[source.span].rows);
            (&typed(&source.column.values)[indices.clone()], indices)
        };
        if sources.len() == spans.len()
            && sources.iter().all(|source| source.column.rows == RowSet::All)
        {
            return Some(Self::All(sources.iter().map(|source| of_source(source).0).collect()));
        }
        let count: usize = sources.iter().map(|source| of_source(source).0.len()).sum();
        if count == 0 {
            return None;
        }
        if count * ROWS_PER_VALUE_MAX < targets.of_rows.len() {
            let mut few = Vec::with_capacity(count);
            for source in sources {
                let (values, indices) = of_source(source);
                let (start, first_row) =
                    (targets.starts[source.span], spans[source.span].rows.start);
                few.extend(values.iter().zip(indices).map(|(value, index)| {
                    (targets.of_rows[start + source.column.rows.row_at(index) - first_row], value)
                }));
            }
            few.sort_unstable_by_key(|(place, _)| *place);
            return Some(Self::Few(few));
        }
        let mut many = Vec::new();
        many.resize_with(spans.len(), || None);
        for source in sources {
            let ((values, indices), rows) = (of_source(source), &spans[source.span].rows);
            let present = match &source.column.rows {
                RowSet::All => PresentRows::All,
                RowSet::Some(present) => PresentRows::of(&present[indices], rows.start, rows.len()),
            };
            many[source.span] = Some((values, present));
        }
        Some(Self::Many(many))
    }
}
