//! Parameters of `GET /topology/series`.

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::query::SeriesRequest;

use super::parameters::{Parameters, checked};
use crate::Refusal;

const ENTITY_IDS_MAX: usize = 16;
const MEASUREMENT: &[u8] = b"telemetry";

/// Reads the parameters of a series read from a query string.
///
/// # Errors
/// Returns `schema_faults` with every fault, or `invalid_input` for characters that names cannot
/// have.
pub fn series_parameters(query: &str) -> Result<SeriesRequest, Refusal> {
    let mut given = Parameters::of(query);
    let entity_ids = given.texts("entity_id", ENTITY_IDS_MAX);
    let start_ns = given.required_time("start");
    let end_ns = given.time("end");
    let measurement = given.text("measurement");
    let fields = given.text("fields").unwrap_or_default();
    let interval = given.choice("interval", &Interval::ALL, Interval::as_str);
    let aggregation = given.choice("agg", &Aggregation::ALL, Aggregation::as_str);
    given.finish()?;
    let entity_ids =
        entity_ids.iter().map(|id| checked("entity_id", id)).collect::<Result<_, _>>()?;
    let measurement = checked("measurement", measurement.as_deref().unwrap_or(MEASUREMENT))?;
    let fields = checked("fields", &fields)?;
    Ok(SeriesRequest {
        entity_ids,
        start_ns,
        end_ns,
        measurement,
        fields: fields.split(',').filter(|field| !field.is_empty()).map(str::to_owned).collect(),
        interval,
        aggregation,
    })
}
