//! Stored rows that no read of the service shows.

use crate::model::batch::Block;
use crate::model::catalog::Catalog;
use crate::query::MEASUREMENTS;

/// Measurement that forecasts read. The service serves it only through forecasts.
const FORECAST_INPUT: &str = "pool_interval";
/// Characters that are kept of a name.
const NAME_MAX: usize = 64;

/// Counts of such rows. Each row counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnseenCounts {
    /// Rows without `entity_id`.
    pub(super) no_entity: u32,
    /// Other rows whose measurement the service does not serve.
    pub(super) other_measurement: u32,
    /// Beginning of the measurement of the first row of each count.
    pub(super) first: [Option<String>; 2],
}

impl UnseenCounts {
    /// Counts such rows of `block`, whose series are stored ids.
    pub(super) fn of(block: &Block, catalog: &Catalog) -> Self {
        let mut unseen = Self::default();
        for run in block.tables.iter().flat_map(|table| table.series.chunk_by(|a, b| a == b)) {
            let Some(series) = catalog.series(run[0]) else { continue };
            let measurement = catalog.measurement_name(series.measurement);
            let is_served = measurement == FORECAST_INPUT || MEASUREMENTS.contains(&measurement);
            if series.entity.is_some() && is_served {
                continue;
            }
            let rows = u32::try_from(run.len()).expect("a batch has fewer than 2^32 rows");
            let (count, kind) = match series.entity {
                None => (&mut unseen.no_entity, 0),
                Some(_) => (&mut unseen.other_measurement, 1),
            };
            *count += rows;
            let beginning = || measurement.chars().take(NAME_MAX).collect();
            unseen.first[kind].get_or_insert_with(beginning);
        }
        unseen
    }
}
