//! Number of rows in a block, from the values that the rows have, not from the values that their
//! columns allow.

use crate::codec::Effort;
use crate::model::batch::{Column, RowSet, Table, Values};

/// Most rows of a block. Example: a day at one row in ten seconds has 8,640 rows and is not cut.
pub(super) const BLOCK_ROWS_MAX: usize = 12_288;
/// Most rows of a block that is soon written again. A day that grows has several segments, each with
/// some rows of an entity. A read of the entity decodes a block of each, with its neighbours.
const PROVISIONAL_BLOCK_ROWS_MAX: usize = 4_096;
/// Most values of a block, which bounds the memory to decode it. A block of a single row may have
/// more.
pub(super) const BLOCK_VALUES_MAX: usize = 1 << 18;
/// Most bytes of text in a block. A block of a single row may have more.
const BLOCK_TEXT_BYTES_MAX: usize = 1 << 22;

/// Number of values, and bytes of text, in each row of a table.
pub(super) struct RowSizes {
    row_count: usize,
    block_rows_max: usize,
    /// Number of values that every row has: one for each column without gaps.
    dense: usize,
    /// Number of further values of each row. Empty if no column has gaps.
    sparse: Vec<u32>,
    /// Bytes of text of each row. Empty if no row has text.
    text_bytes: Vec<usize>,
}

impl RowSizes {
    pub(super) fn of(table: &Table, effort: Effort) -> Self {
        let row_count = table.row_count();
        let block_rows_max = match effort {
            Effort::Low => PROVISIONAL_BLOCK_ROWS_MAX,
            Effort::High => BLOCK_ROWS_MAX,
        };
        let (sparse, text_bytes) = (Vec::new(), Vec::new());
        let mut sizes = Self { row_count, block_rows_max, dense: 0, sparse, text_bytes };
        let is_text = |column: &Column| matches!(column.values, Values::Text(_));
        if table.columns.len() * BLOCK_ROWS_MAX <= BLOCK_VALUES_MAX
            && !table.columns.iter().any(is_text)
        {
            // So few columns cannot fill a block, even if every row has all values.
            return sizes;
        }
        for column in &table.columns {
            match &column.rows {
                RowSet::All => sizes.dense += 1,
                RowSet::Some(present) => {
                    sizes.sparse.resize(row_count, 0);
                    for row in present {
                        sizes.sparse[*row as usize] += 1;
                    }
                }
            }
            if let Values::Text(values) = &column.values {
                sizes.text_bytes.resize(row_count, 0);
                for (index, value) in values.iter().enumerate() {
                    sizes.text_bytes[column.rows.row_at(index)] += value.len();
                }
            }
        }
        sizes
    }

    /// Returns the number of rows from `start` on that fit a block: at least one, if the table has
    /// one.
    pub(super) fn rows_in_block(&self, start: usize) -> usize {
        let end = self.row_count.min(start + self.block_rows_max);
        if self.sparse.is_empty() && self.text_bytes.is_empty() {
            return (end - start).min((BLOCK_VALUES_MAX / self.dense.max(1)).max(1));
        }
        let (mut values, mut text_bytes) = (0, 0);
        let fits = |row: &usize| {
            values += self.dense + self.sparse.get(*row).map_or(0, |sparse| *sparse as usize);
            text_bytes += self.text_bytes.get(*row).unwrap_or(&0);
            values <= BLOCK_VALUES_MAX && text_bytes <= BLOCK_TEXT_BYTES_MAX
        };
        (start..end).take_while(fits).count().max(1).min(end - start)
    }
}
