//! Rows that are stored and that no read of the service shows.

use crate::model::batch::Block;
use crate::model::catalog::Catalog;
use crate::query::MEASUREMENTS;

/// Numbers of such rows, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unseen {
    /// Rows without `entity_id`.
    pub(super) no_entity: u32,
    /// Other rows, of a measurement that the service does not serve.
    pub(super) other_measurement: u32,
}

impl Unseen {
    /// Those of `block`, whose series are stored ids.
    pub(super) fn of(block: &Block, catalog: &Catalog) -> Self {
        let mut unseen = Self::default();
        for run in block.tables.iter().flat_map(|table| table.series.chunk_by(|a, b| a == b)) {
            let Some(series) = catalog.series(run[0]) else { continue };
            let rows = u32::try_from(run.len()).expect("a batch has fewer than 2^32 rows");
            if series.entity.is_none() {
                unseen.no_entity += rows;
            } else if !MEASUREMENTS.contains(&catalog.measurement_name(series.measurement)) {
                unseen.other_measurement += rows;
            }
        }
        unseen
    }
}
