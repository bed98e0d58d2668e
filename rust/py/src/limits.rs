//! The engine's limits as Python sees them: the defaults of the service's settings.

use pyo3::prelude::*;

use fleetcast_core::model::limits;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("BATCH_RECORDS_MAX", limits::BATCH_RECORDS_MAX)?;
    module.add("CALL_RECORDS_MAX", limits::CALL_RECORDS_MAX)?;
    module.add("TAGS_MAX", limits::TAGS_MAX)?;
    module.add("FIELDS_MAX", limits::FIELDS_MAX)?;
    module.add("TENANT_FIELDS_MAX", limits::TENANT_FIELDS_MAX)?;
    module.add("TENANT_SERIES_MAX", limits::TENANT_SERIES_MAX)?;
    module.add("TENANT_NAMES_BYTES_MAX", limits::TENANT_NAMES_BYTES_MAX)?;
    module.add("POINTS_MAX", limits::POINTS_MAX)?;
    module.add("ANSWER_VALUES_MAX", limits::ANSWER_VALUES_MAX)?;
    module.add("HISTORY_DAYS_MAX", limits::HISTORY_DAYS_MAX)?;
    module.add("RAW_SPAN_SECONDS_MAX", limits::RAW_SPAN_SECONDS_MAX)
}
