//! Sorted rows of one origin that a stream reads.

use std::sync::Arc;

use crate::codec::{BlockReader, TableReader};
use crate::model::batch::Table;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::plane::registry::NamesRegistry;
use crate::plane::sealed::SealedStore;
use crate::query::scan::{ScanSchema, ScanSelection};
use crate::storage::segment::{Segment, SegmentPart, SortedTables};
use crate::storage::tombstone::{Tombstone, into_visible};

/// Returns the blocks that may have wanted rows.
pub(super) fn wanted_blocks(
    segment: &Segment,
    selection: &ScanSelection,
    catalog: &Catalog,
) -> Result<Vec<usize>> {
    let mut wanted = Vec::new();
    for (index, block) in segment.blocks().iter().enumerate() {
        let series = catalog.series(block.first.0);
        let series = series.ok_or(Error::Corrupt { what: "a series without a name" })?;
        if block.overlaps(selection.times_ns())
            && selection.wants_measurement(series.measurement)
            && selection.wants_representative_in(block.first.0..=block.last.0)
        {
            wanted.push(index);
        }
    }
    Ok(wanted)
}

/// Sorted rows of one origin.
pub(super) enum RowSource {
    Segment {
        sealed: Arc<SealedStore>,
        schema: Arc<ScanSchema>,
        registry: Arc<NamesRegistry>,
        segment: Segment,
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
            Self::Segment { sealed, schema, registry, segment, blocks, hiding } => {
                let hiding: Vec<&Tombstone> = hiding.iter().collect();
                for index in blocks {
                    sealed.store.check_open()?;
                    let plain = segment.read(&*sealed.store, SegmentPart::Block(index))?;
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
