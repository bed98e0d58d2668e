//! The binding of Python to the engine: converts arguments, releases the GIL, wraps results.
//! Rules of the domain live in other crates. `python/fleetcast/_core.pyi` describes what Python
//! sees.

#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "pyo3 hands arguments over as it made them, and each keyword is an argument"
)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod errors;

mod gil;

mod arguments;
mod html;
mod shown;

mod latin1;
mod pieces;

mod body;

mod arrays;
mod arrow;

mod long_answer;
mod results;

mod describe;
mod encode;
mod limiter;
mod text;
mod write_arrow;

#[cfg_attr(not(feature = "cluster"), path = "no_cluster.rs")]
mod cluster;

mod plane;

mod master_keys;

mod planes;

mod adapted;

mod records;

mod secret_text;

mod accounts;

mod forecasts;

mod links;

mod service;

mod front;

mod grpc;

use pyo3::prelude::*;

/// The compiled engine.
#[pymodule]
mod _core {
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    use fleetcast_core::model::aggregate::{Aggregation, Interval};
    use fleetcast_core::model::clock::CallTime;
    use fleetcast_core::model::{column_name, limits, time};
    use fleetcast_core::query;
    use fleetcast_docstrings::documented;

    #[pymodule_export]
    use crate::{
        accounts::{ApiKey, ConsoleSession, Identity, OperatorToken, Tenant, UsageRecord},
        adapted::NameMapping,
        arrow::{ArrowStream, RowBatch, RowMessages, RowStream},
        cluster::Cluster,
        encode::{encode_json, encode_protobuf, is_acceptable, time_ns},
        errors::{
            InvalidKey, RecordsUnavailable, Refused, StoreDamaged, StoreError, StoreExists,
            StoreFull, StoreMissing, StoreUnavailable, StoreUnreachable, TenantFull,
        },
        forecasts::{
            ForecastFamily, ForecastQuestion, ForecastValue, KeptForecasts, OpenScores,
            RecentForecasts, RecordStamp, assignment_id, forecast_key,
        },
        front::{Front, Request},
        grpc::{EndedCall, GrpcFront, GrpcNotice},
        limiter::LimiterFile,
        links::{link_features, stored_link_features, stored_link_rows},
        long_answer::LongAnswer,
        master_keys::{MasterKeys, open_secret, seal_secret},
        pieces::Piece,
        plane::Plane,
        planes::{OpenPlanes, Planes},
        records::{Records, RecordsTransaction},
        results::{Compacted, Deleted, KeptHours, Saved, Stats, Upcoming, Verified, WriteResult},
        secret_text::SecretText,
        service::{
            Authenticator, Decision, Service, Serving, key_fields, name_process, note_unreadable,
            refusal_is_logged, routes, tell_left_out, write_served,
        },
        text::TextFormat,
        write_arrow::ArrowWrites,
    };

    #[pymodule_init]
    fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
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
        module.add("RAW_SPAN_SECONDS_MAX", limits::RAW_SPAN_SECONDS_MAX)?;
        module.add("MEASUREMENTS", PyTuple::new(py, query::MEASUREMENTS)?)?;
        module.add("INTERVALS", PyTuple::new(py, Interval::ALL.map(Interval::as_str))?)?;
        module.add("AGGREGATIONS", PyTuple::new(py, Aggregation::ALL.map(Aggregation::as_str))?)
    }

    #[documented]
    #[pyfunction]
    fn is_clock_believed() -> bool {
        CallTime::by_wall_clock().is_believed
    }

    #[documented]
    #[pyfunction]
    fn parse_time(text: &str) -> PyResult<i64> {
        time::parse_ns(text.as_bytes()).ok_or_else(|| {
            PyValueError::new_err("not an ISO 8601 datetime such as 2026-01-31T12:00:00Z")
        })
    }

    #[documented]
    #[pyfunction]
    fn format_time(time_ns: i64) -> String {
        let mut out = Vec::new();
        time::write_rfc3339(&mut out, time_ns);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[documented]
    #[pyfunction]
    fn field_of_column(column: &str) -> String {
        column_name::field_of(column).0.into_owned()
    }

    #[documented]
    #[pyfunction]
    fn column_of_field(field: &str, kind: &str) -> PyResult<String> {
        Ok(column_name::of_field(field, crate::arguments::field_type_of(kind)?, true))
    }
}
