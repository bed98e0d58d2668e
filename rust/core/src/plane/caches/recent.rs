//! The newest blocks of the log, decoded: most reads ask for the last hour, and unsealing and
//! decoding its blocks for every read is nearly all that such a read costs.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::batch::{Block, Rows, Table, Values};
use crate::model::limits::RECENT_BYTES_MAX;

/// The newest blocks, in write order, at most [`RECENT_BYTES_MAX`] of them.
#[derive(Default)]
pub(in crate::plane) struct RecentBlocks {
    blocks: VecDeque<RecentBlock>,
    bytes: usize,
}

struct RecentBlock {
    sequence: u64,
    bytes: usize,
    block: DecodedBlock,
}

/// A block of the log that may be in use in several places.
#[derive(Clone)]
pub(in crate::plane) struct DecodedBlock {
    pub(in crate::plane) ingest_ns: i64,
    pub(in crate::plane) tables: Arc<[Table]>,
}

impl From<Block> for DecodedBlock {
    fn from(block: Block) -> Self {
        Self { ingest_ns: block.ingest_ns, tables: block.tables.into() }
    }
}

impl RecentBlocks {
    /// Adds the block at `sequence`, which is greater than all before, and drops the oldest where
    /// there are too many bytes.
    pub(in crate::plane) fn push(&mut self, sequence: u64, block: Block) {
        let bytes = block.tables.iter().map(table_bytes).sum();
        self.bytes += bytes;
        self.blocks.push_back(RecentBlock { sequence, bytes, block: block.into() });
        while self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.blocks.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
    }

    /// Bytes of the blocks.
    pub(in crate::plane) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops the blocks up to `sequence`.
    pub(in crate::plane) fn forget_until(&mut self, sequence: u64) {
        while let Some(oldest) = self.blocks.pop_front_if(|block| block.sequence <= sequence) {
            self.bytes -= oldest.bytes;
        }
    }

    /// The block at `sequence`, if it is here.
    pub(in crate::plane) fn get(&self, sequence: u64) -> Option<DecodedBlock> {
        let at = self.blocks.binary_search_by_key(&sequence, |block| block.sequence).ok()?;
        Some(self.blocks.get(at)?.block.clone())
    }

    /// The tables of those of `sequences`, which ascend, that are here: they are the last ones.
    pub(in crate::plane) fn newest_of(&self, sequences: &[u64]) -> Vec<Arc<[Table]>> {
        let Some(first) = self.blocks.front() else { return Vec::new() };
        let start = sequences.partition_point(|sequence| *sequence < first.sequence);
        let mut blocks = self.blocks.iter();
        sequences[start..]
            .iter()
            .filter_map(|sequence| blocks.find(|block| block.sequence == *sequence))
            .map(|block| Arc::clone(&block.block.tables))
            .collect()
    }
}

fn table_bytes(table: &Table) -> usize {
    let columns = table.columns.iter().map(|column| {
        let rows = match &column.rows {
            Rows::All => 0,
            Rows::Some(rows) => size_of_val(rows.as_slice()),
        };
        rows + match &column.values {
            Values::Float(values) => size_of_val(values.as_slice()),
            Values::Bool(values) => size_of_val(values.as_slice()),
            Values::Text(values) => {
                let texts: usize = values.iter().map(|text| text.len()).sum();
                size_of_val(values.as_slice()) + texts
            }
        }
    });
    let rows = size_of_val(table.series.as_slice()) + size_of_val(table.times_ns.as_slice());
    size_of::<Table>() + rows + columns.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::Column;

    fn block(rows: usize) -> Block {
        let values = Values::Float(vec![1.0; rows]);
        let columns = vec![Column { field: 1, rows: Rows::All, values }];
        let table = Table { series: vec![1; rows], times_ns: vec![0; rows], columns };
        Block { ingest_ns: 0, tables: vec![table] }
    }

    #[test]
    fn the_newest_stay_within_the_bound() {
        let mut recent = RecentBlocks::default();
        let rows = RECENT_BYTES_MAX / 20 / 4;
        for sequence in [1, 2, 3, 5, 8] {
            recent.push(sequence, block(rows));
            assert!(recent.bytes <= RECENT_BYTES_MAX);
        }
        assert_eq!(recent.blocks.iter().map(|block| block.sequence).collect::<Vec<_>>(), [3, 5, 8]);
        assert_eq!(recent.newest_of(&[1, 3, 8]).len(), 2);
        assert_eq!(recent.newest_of(&[1, 2]).len(), 0);
        let there = |sequence| recent.get(sequence).is_some();
        assert_eq!([2, 3, 4, 8, 9].map(there), [false, true, false, true, false]);
        recent.push(9, block(RECENT_BYTES_MAX));
        assert_eq!((recent.blocks.len(), recent.bytes), (0, 0));
    }
}
