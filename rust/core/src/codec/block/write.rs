//! Writing a block.

use super::head::{ColumnHead, TableHead, TimeBounds};
use super::run_lengths::RunLengths;
use super::{bools, rows, texts};
use crate::codec::Effort;
use crate::codec::bytes::put_len;
use crate::codec::float::{self, FloatBounds};
use crate::codec::integer;
use crate::model::batch::{Block, Column, NEW_SERIES_BASE, RowSet, Table, Values};
use crate::model::error::{Error, Result};
use crate::model::limits::{BLOCK_CELLS_MAX, BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX};

/// Version of the block layout.
pub(super) const VERSION: u8 = 4;

/// Lowest version that is read. It has no lists of gaps.
pub(super) const FIRST_VERSION: u8 = 3;

/// Bytes of the checksum.
pub(super) const CHECKSUM_LEN: usize = 4;

/// Encodes a block in the shortest of the forms that `effort` tries.
///
/// # Errors
///
/// Returns [`Error::TooLarge`] if the block has more rows, values or text than
/// [`crate::model::limits`] allows.
///
/// # Panics
///
/// Panics if `block` breaks a promise of [`crate::model::batch`]. Examples are columns of unequal
/// length, rows that do not ascend and a field that occurs twice. Others are a series without a
/// stored id and a double that is not finite.
pub fn encode_block(block: &Block, effort: Effort) -> Result<Vec<u8>> {
    check_limits(block)?;
    let mut heads = vec![VERSION];
    heads.extend_from_slice(&block.ingest_ns.to_le_bytes());
    put_len(&mut heads, block.tables.len());
    let mut bodies = Vec::new();
    for table in &block.tables {
        encode_table(table, block.ingest_ns, effort, &mut heads, &mut bodies);
    }
    let mut bytes = heads;
    bytes.reserve_exact(bodies.len() + CHECKSUM_LEN);
    bytes.append(&mut bodies);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

fn check_limits(block: &Block) -> Result<()> {
    let columns = || block.tables.iter().flat_map(|table| &table.columns);
    for (what, count, max) in [
        ("rows", block.tables.iter().map(Table::row_count).sum(), BLOCK_ROWS_MAX),
        ("values", columns().map(|column| column.values.len()).sum(), BLOCK_CELLS_MAX),
        ("bytes of text", columns().map(text_bytes).sum::<usize>(), BLOCK_TEXT_BYTES_MAX),
    ] {
        if count > max {
            return Err(Error::TooLarge { what, count, max });
        }
    }
    Ok(())
}

fn text_bytes(column: &Column) -> usize {
    match &column.values {
        Values::Text(values) => values.iter().map(|value| value.len()).sum(),
        Values::Float(_) | Values::Bool(_) => 0,
    }
}

fn encode_table(
    table: &Table,
    ingest_ns: i64,
    effort: Effort,
    heads: &mut Vec<u8>,
    bodies: &mut Vec<u8>,
) {
    assert_eq!(table.series.len(), table.row_count(), "a series for each row");
    let bits = table.series.iter().fold(0, |bits, series| bits | series);
    assert!(bits < NEW_SERIES_BASE, "series have stored ids");
    let mut fields: Vec<u32> = table.columns.iter().map(|column| column.field).collect();
    fields.sort_unstable();
    assert!(fields.is_sorted_by(|a, b| a < b), "each field once");

    let runs = RunLengths::of(&table.series);
    let start = bodies.len();
    runs.encode(effort, bodies);
    let times_start = bodies.len();
    integer::encode_times(&table.times_ns, runs.lengths(), effort, bodies);
    let times_end = bodies.len();
    let mut column_heads = Vec::new();
    let columns = table
        .columns
        .iter()
        .map(|column| encode_column(column, &runs, effort, &mut column_heads, bodies))
        .collect();
    let head = TableHead {
        row_count: table.row_count(),
        times: TimeBounds::of(&table.times_ns),
        columns,
        series_len: times_start - start,
        times_len: times_end - times_start,
    };
    head.encode(ingest_ns, heads);
    heads.append(&mut column_heads);
}

fn encode_column(
    column: &Column,
    runs: &RunLengths,
    effort: Effort,
    heads: &mut Vec<u8>,
    bodies: &mut Vec<u8>,
) -> ColumnHead {
    let (row_count, count) = (runs.row_count(), column.values.len());
    match &column.rows {
        RowSet::All => assert_eq!(count, row_count, "a value for each row"),
        RowSet::Some(rows) => {
            assert_eq!(count, rows.len(), "a value for each row that has one");
            assert!(rows.is_sorted_by(|a, b| a < b), "rows ascend");
            assert!(rows.last().is_none_or(|last| (*last as usize) < row_count), "rows exist");
        }
    }
    let start = bodies.len();
    let rows = rows::encode(&column.rows, row_count, effort, bodies);
    let values_start = bodies.len();
    let lengths = runs.lengths_of(&column.rows);
    let mut bounds = None;
    let mut exponent: Option<Option<usize>> = None;
    match &column.values {
        Values::Float(values) => {
            (bounds, exponent) = float::encode(values, &lengths, effort, bodies).unzip();
            // In the total order, infinities and NaN lie outside all finite doubles.
            let finite = |bounds: FloatBounds| bounds.min.is_finite() && bounds.max.is_finite();
            assert!(bounds.is_none_or(finite), "doubles are finite");
        }
        Values::Bool(values) => bools::encode(values, bodies),
        Values::Text(values) => texts::encode(values, &lengths, effort, bodies),
    }
    let head = ColumnHead {
        field: column.field,
        field_type: column.values.field_type(),
        count,
        bounds,
        rows,
        rows_len: values_start - start,
        values_len: bodies.len() - values_start,
    };
    head.encode(exponent.flatten(), heads);
    head
}
