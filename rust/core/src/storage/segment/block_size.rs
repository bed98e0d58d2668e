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

/// Number of values, and bytes of text, in each row of some tables.
pub(super) struct RowSizes {
    row_count: usize,
    block_rows_max: usize,
    /// Empty if a block is full of rows before it is full of values.
    of_rows: Vec<RowSize>,
}

#[derive(Clone, Copy, Default)]
struct RowSize {
    values: usize,
    text_bytes: usize,
}

impl RowSizes {
    /// Counts the rows of `tables`, one table after another.
    pub(super) fn of(tables: &[Table], effort: Effort) -> Self {
        let row_count = tables.iter().map(Table::row_count).sum();
        let block_rows_max = match effort {
            Effort::Low => PROVISIONAL_BLOCK_ROWS_MAX,
            Effort::High => BLOCK_ROWS_MAX,
        };
        let mut sizes = Self { row_count, block_rows_max, of_rows: Vec::new() };
        let is_text = |column: &Column| matches!(column.values, Values::Text(_));
        let is_small = |table: &Table| {
            table.columns.len() * BLOCK_ROWS_MAX <= BLOCK_VALUES_MAX
                && !table.columns.iter().any(is_text)
        };
        if !tables.iter().all(is_small) {
            sizes.of_rows = tables.iter().flat_map(of_rows).collect();
        }
        sizes
    }

    /// Returns the number of rows from `start` on that fit a block: at least one, if there is one.
    pub(super) fn rows_in_block(&self, start: usize) -> usize {
        let end = self.row_count.min(start + self.block_rows_max);
        if self.of_rows.is_empty() {
            return end - start;
        }
        let (mut values, mut text_bytes) = (0, 0);
        let fits = |row: &&RowSize| {
            values += row.values;
            text_bytes += row.text_bytes;
            values <= BLOCK_VALUES_MAX && text_bytes <= BLOCK_TEXT_BYTES_MAX
        };
        let fitting = self.of_rows[start..end].iter().take_while(fits).count();
        fitting.max(1).min(end - start)
    }
}

fn of_rows(table: &Table) -> Vec<RowSize> {
    let is_dense = |column: &&Column| column.rows == RowSet::All;
    let values = table.columns.iter().filter(is_dense).count();
    let mut sizes = vec![RowSize { values, text_bytes: 0 }; table.row_count()];
    for column in &table.columns {
        if let RowSet::Some(present) = &column.rows {
            for row in present {
                sizes[*row as usize].values += 1;
            }
        }
        if let Values::Text(texts) = &column.values {
            for (index, text) in texts.iter().enumerate() {
                sizes[column.rows.row_at(index)].text_bytes += text.len();
            }
        }
    }
    sizes
}
