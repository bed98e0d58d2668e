//! How many rows fill a block: by what they hold, not by what they could.

use crate::model::batch::{Rows, Table, Values};

/// Rows of a block: a day at one row in ten seconds is not cut.
pub(super) const BLOCK_ROWS_MAX: usize = 12_288;
/// Values of a block, unless it has a single row.
const BLOCK_VALUES_MAX: usize = 1 << 18;
/// Bytes of text in a block, unless it has a single row.
const BLOCK_TEXT_BYTES_MAX: usize = 1 << 22;

/// How much each row of a table holds.
pub(super) struct Fill {
    row_count: usize,
    /// Values that every row has.
    dense: usize,
    /// Values of each row beside those; empty where no row has any.
    sparse: Vec<u32>,
    /// Bytes of text of each row; empty where no row has any.
    text_bytes: Vec<usize>,
}

impl Fill {
    pub(super) fn of(table: &Table) -> Self {
        let row_count = table.row_count();
        let mut fill = Self { row_count, dense: 0, sparse: Vec::new(), text_bytes: Vec::new() };
        for column in &table.columns {
            match &column.rows {
                Rows::All => fill.dense += 1,
                Rows::Some(present) => {
                    fill.sparse.resize(row_count, 0);
                    for row in present {
                        fill.sparse[*row as usize] += 1;
                    }
                }
            }
            if let Values::Text(values) = &column.values {
                fill.text_bytes.resize(row_count, 0);
                for (place, value) in values.iter().enumerate() {
                    fill.text_bytes[column.rows.row_at(place)] += value.len();
                }
            }
        }
        fill
    }

    /// Rows from `start` on that fit a block, at least one if there is one.
    pub(super) fn rows_from(&self, start: usize) -> usize {
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
