//! Number of rows in a block, by the values that they have, not by those that they could have.

use crate::model::batch::{Column, Rows, Table, Values};

/// Rows of a block: a day at one row in ten seconds is not cut.
pub(super) const BLOCK_ROWS_MAX: usize = 12_288;
/// Values of a block, unless it has a single row.
pub(super) const BLOCK_VALUES_MAX: usize = 1 << 18;
/// Bytes of text in a block, unless it has a single row.
const BLOCK_TEXT_BYTES_MAX: usize = 1 << 22;

/// Values and bytes of text in each row of a table.
pub(super) struct RowSizes {
    row_count: usize,
    /// Values that every row has.
    dense: usize,
    /// Values of each row beside those; empty where no row has any.
    sparse: Vec<u32>,
    /// Bytes of text of each row; empty where no row has any.
    text_bytes: Vec<usize>,
}

impl RowSizes {
    pub(super) fn of(table: &Table) -> Self {
        let row_count = table.row_count();
        let mut sizes = Self { row_count, dense: 0, sparse: Vec::new(), text_bytes: Vec::new() };
        let is_text = |column: &Column| matches!(column.values, Values::Text(_));
        if table.columns.len() * BLOCK_ROWS_MAX <= BLOCK_VALUES_MAX
            && !table.columns.iter().any(is_text)
        {
            // Whichever rows have values: so many do not fill a block.
            return sizes;
        }
        for column in &table.columns {
            match &column.rows {
                Rows::All => sizes.dense += 1,
                Rows::Some(present) => {
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

    /// Number of rows from `start` on that fit a block, at least one if there is one.
    pub(super) fn rows_in_block(&self, start: usize) -> usize {
        let end = self.row_count.min(start + BLOCK_ROWS_MAX);
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
