//! Heads of tables and columns. A query reads the heads before it decodes any column.

use super::rows;
use crate::codec::bytes::{ByteReader, put_len, put_varint, put_zigzag};
use crate::codec::float::FloatBounds;
use crate::codec::simd::multiversioned;
use crate::model::batch::FieldType;
use crate::model::error::Result;

/// Flag of a column whose bounds are decimals.
const SCALED_BOUNDS: u8 = 1 << 4;

/// Earliest and latest time of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// Earliest time, in nanoseconds since 1970.
    pub min_ns: i64,
    /// Latest time, in nanoseconds since 1970.
    pub max_ns: i64,
}

impl TimeBounds {
    /// Returns the bounds of the times, or `None` if there are no times.
    ///
    /// Example: the bounds of `[30, 10, 20]` are `min_ns` 10 and `max_ns` 30.
    #[must_use]
    pub fn of(times_ns: &[i64]) -> Option<Self> {
        (!times_ns.is_empty()).then(|| time_range(times_ns))
    }
}

multiversioned! {
    fn time_range(times_ns: &[i64]) -> TimeBounds {
        let (mut min_ns, mut max_ns) = (i64::MAX, i64::MIN);
        for time_ns in times_ns {
            min_ns = min_ns.min(*time_ns);
            max_ns = max_ns.max(*time_ns);
        }
        TimeBounds { min_ns, max_ns }
    }
}

/// Head of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnHead {
    /// Stored field id.
    pub field: u32,
    /// Type of the values.
    pub field_type: FieldType,
    /// Number of values.
    pub count: usize,
    /// Smallest and largest value, if this is a float column with at least one value.
    pub bounds: Option<FloatBounds>,
    pub(super) rows: rows::Form,
    pub(super) rows_len: usize,
    pub(super) values_len: usize,
}

impl ColumnHead {
    /// Bytes that the column takes in the block, without its head.
    #[must_use]
    pub const fn stored_len(&self) -> usize {
        self.rows_len + self.values_len
    }

    /// Appends the head. `exponent` is the exponent that scales the values, if the values are
    /// decimals.
    pub(super) fn encode(&self, exponent: Option<usize>, out: &mut Vec<u8>) {
        put_varint(out, self.field.into());
        let flags = self.field_type.code() | (self.rows as u8) << 2;
        let flags_index = out.len();
        out.push(flags);
        if self.rows != rows::Form::All {
            put_len(out, self.count);
        }
        if let Some(bounds) = self.bounds
            && bounds.encode(exponent, out)
        {
            out[flags_index] |= SCALED_BOUNDS;
        }
        if self.rows != rows::Form::All {
            put_len(out, self.rows_len);
        }
        put_len(out, self.values_len);
    }

    fn decode(input: &mut ByteReader<'_>, row_count: usize) -> Result<Self> {
        let field = u32::try_from(input.varint()?).map_err(|_| input.corrupt())?;
        let flags = input.byte()?;
        let field_type = FieldType::of_code(flags & 0b11).ok_or_else(|| input.corrupt())?;
        let rows = rows::Form::of_code((flags >> 2) & 0b11).ok_or_else(|| input.corrupt())?;
        let scaled = flags & SCALED_BOUNDS != 0;
        let count = if rows == rows::Form::All { row_count } else { input.len(row_count)? };
        let has_bounds = field_type == FieldType::Float && count > 0;
        input.check(flags >> 5 == 0 && (has_bounds || !scaled))?;
        let bounds = has_bounds.then(|| FloatBounds::decode(input, scaled)).transpose()?;
        let rows_len = if rows == rows::Form::All { 0 } else { input.len(usize::MAX)? };
        let values_len = input.len(usize::MAX)?;
        Ok(Self { field, field_type, count, bounds, rows, rows_len, values_len })
    }
}

/// Head of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableHead {
    /// Number of rows.
    pub row_count: usize,
    /// Earliest and latest time, if there is a row.
    pub times: Option<TimeBounds>,
    /// Head of each column, in the order of the table.
    pub columns: Vec<ColumnHead>,
    pub(super) series_len: usize,
    pub(super) times_len: usize,
}

impl TableHead {
    /// Bytes that the series column takes in the block.
    #[must_use]
    pub const fn stored_series_len(&self) -> usize {
        self.series_len
    }

    /// Bytes that the times take in the block.
    #[must_use]
    pub const fn stored_times_len(&self) -> usize {
        self.times_len
    }

    /// Returns the bytes of all bodies, or `None` if the sum overflows.
    pub(super) fn bodies_len(&self) -> Option<usize> {
        let columns = self.columns.iter().flat_map(|column| [column.rows_len, column.values_len]);
        columns.chain([self.series_len, self.times_len]).try_fold(0_usize, usize::checked_add)
    }

    /// Appends the head of the table, without the heads of its columns.
    pub(super) fn encode(&self, ingest_ns: i64, out: &mut Vec<u8>) {
        put_len(out, self.row_count);
        if let Some(TimeBounds { min_ns, max_ns }) = self.times {
            put_zigzag(out, min_ns.wrapping_sub(ingest_ns));
            put_varint(out, max_ns.wrapping_sub(min_ns).cast_unsigned());
        }
        put_len(out, self.series_len);
        put_len(out, self.times_len);
        put_len(out, self.columns.len());
    }

    /// Reads the head of a table of at most `rows_max` rows, and the heads of its columns.
    pub(super) fn decode(
        input: &mut ByteReader<'_>,
        ingest_ns: i64,
        rows_max: usize,
    ) -> Result<Self> {
        let row_count = input.len(rows_max)?;
        let times = (row_count > 0).then(|| decode_times(input, ingest_ns)).transpose()?;
        let series_len = input.len(usize::MAX)?;
        let times_len = input.len(usize::MAX)?;
        let column_count = input.len(input.remaining())?;
        let mut columns = Vec::new();
        for _ in 0..column_count {
            columns.push(ColumnHead::decode(input, row_count)?);
        }
        let mut fields: Vec<u32> = columns.iter().map(|column| column.field).collect();
        fields.sort_unstable();
        input.check(fields.is_sorted_by(|a, b| a < b))?;
        Ok(Self { row_count, times, columns, series_len, times_len })
    }
}

fn decode_times(input: &mut ByteReader<'_>, ingest_ns: i64) -> Result<TimeBounds> {
    let min_ns = ingest_ns.wrapping_add(input.zigzag()?);
    let max_ns = min_ns.checked_add_unsigned(input.varint()?).ok_or_else(|| input.corrupt())?;
    Ok(TimeBounds { min_ns, max_ns })
}
