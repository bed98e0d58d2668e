//! Sorted rows of one origin that a stream reads.

use std::sync::Arc;

use crate::codec::{BlockReader, TableReader};
use crate::model::batch::Table;
use crate::model::error::Result;
use crate::plane::caches::open_segments::OpenSegment;
use crate::plane::registry::NamesRegistry;
use crate::plane::sealed::SealedStore;
use crate::query::scan::{ScanSchema, ScanSelection};
use crate::storage::segment::{SegmentPart, SortedTables};
use crate::storage::tombstone::{Tombstone, into_visible};

/// Returns the blocks that may have wanted rows.
pub(super) fn wanted_blocks(open: &OpenSegment, selection: &ScanSelection) -> Vec<usize> {
    let blocks = open.blocks(None, selection.times_ns());
    let wanted = blocks.filter(|(index, block)| {
        selection.wants_measurement(open.measurements[*index])
            && selection.wants_representative_in(block.first.0..=block.last.0)
    });
    wanted.map(|(index, _)| index).collect()
}

/// Returns a block without its seal. A scan of chosen series keeps the block for later reads, as
/// reads of series do. A scan of all rows would drive their blocks out of the cache.
pub(super) fn block_bytes(
    sealed: &SealedStore,
    open: &OpenSegment,
    index: usize,
    chooses_series: bool,
) -> Result<Arc<Vec<u8>>> {
    let part = SegmentPart::Block(index);
    if chooses_series {
        return sealed.part(open, part);
    }
    sealed.store.check_open()?;
    open.segment.read(&*sealed.store, part).map(Arc::new)
}

/// Sorted rows of one origin.
pub(super) enum RowSource {
    Segment {
        sealed: Arc<SealedStore>,
        schema: Arc<ScanSchema>,
        registry: Arc<NamesRegistry>,
        open: Arc<OpenSegment>,
        chooses_series: bool,
        blocks: std::vec::IntoIter<usize>,
        /// Tombstones that hide rows of the segment.
        hiding: Vec<Tombstone>,
    },
    /// Rows in memory.
    Tables(std::vec::IntoIter<Table>),
}

impl SortedTables for RowSource {
    fn next_table(&mut self) -> Result<Option<Table>> {
        match self {
            Self::Tables(tables) => Ok(tables.next()),
            Self::Segment { sealed, schema, registry, open, chooses_series, blocks, hiding } => {
                let hiding: Vec<&Tombstone> = hiding.iter().collect();
                for index in blocks {
                    let plain = block_bytes(sealed, open, index, *chooses_series)?;
                    let table = wanted_columns(&BlockReader::open(&plain)?.table(0)?, schema)?;
                    if hiding.is_empty() {
                        return Ok(Some(table));
                    }
                    let table = into_visible(table, &hiding, &registry.names().catalog);
                    if table.row_count() > 0 {
                        return Ok(Some(table));
                    }
                }
                Ok(None)
            }
        }
    }

    fn has_more(&self) -> bool {
        match self {
            Self::Tables(tables) => tables.len() > 0,
            Self::Segment { blocks, .. } => blocks.len() > 0,
        }
    }
}

/// Returns the rows of a table with only the columns of a schema.
fn wanted_columns(table: &TableReader<'_>, schema: &ScanSchema) -> Result<Table> {
    let mut columns = Vec::new();
    for (index, head) in table.head().columns.iter().enumerate() {
        if schema.column_of(head.field).is_some() {
            columns.push(table.column(index)?);
        }
    }
    Ok(Table { series: table.series(), times_ns: table.times_ns()?, columns })
}
