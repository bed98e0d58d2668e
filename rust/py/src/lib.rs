//! The door between Python and the engine: takes arguments in, leaves the GIL, wraps results out.
//! No rule of the domain lives here; `python/fleetcast/_core.pyi` describes what Python sees.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod errors;

mod door;

mod arguments;
mod arrow;
mod shown;

mod body;
mod latin1;
mod limits;
mod pieces;

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

mod planes;

mod adapted;

mod records;

mod secret_text;

mod accounts;

mod service;

mod front;

mod grpc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::clock::Now;
use fleetcast_core::model::{column_name, time};
use fleetcast_core::query::MEASUREMENTS;

#[pyfunction]
fn is_clock_believed() -> bool {
    Now::by_wall_clock().is_believed
}

#[pyfunction]
fn parse_time(text: &str) -> PyResult<i64> {
    time::parse_ns(text.as_bytes()).ok_or_else(|| {
        PyValueError::new_err("not an ISO 8601 datetime such as 2026-01-31T12:00:00Z")
    })
}

#[pyfunction]
fn format_time(time_ns: i64) -> String {
    let mut out = Vec::new();
    time::write_rfc3339(&mut out, time_ns);
    String::from_utf8_lossy(&out).into_owned()
}

#[pyfunction]
fn field_of_column(column: &str) -> String {
    column_name::field_of(column).0.into_owned()
}

#[pyfunction]
fn column_of_field(field: &str, kind: &str) -> PyResult<String> {
    Ok(column_name::of_field(field, arguments::field_type_of(kind)?, true))
}

/// The compiled engine.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("MEASUREMENTS", PyTuple::new(py, MEASUREMENTS)?)?;
    module.add("INTERVALS", PyTuple::new(py, Interval::ALL.map(Interval::as_str))?)?;
    module.add("AGGREGATIONS", PyTuple::new(py, Aggregation::ALL.map(Aggregation::as_str))?)?;
    module.add_function(wrap_pyfunction!(is_clock_believed, module)?)?;
    module.add_function(wrap_pyfunction!(parse_time, module)?)?;
    module.add_function(wrap_pyfunction!(format_time, module)?)?;
    module.add_function(wrap_pyfunction!(field_of_column, module)?)?;
    module.add_function(wrap_pyfunction!(column_of_field, module)?)?;
    module.add_function(wrap_pyfunction!(encode::time_ns, module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode_json, module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode_protobuf, module)?)?;
    module.add_function(wrap_pyfunction!(encode::is_acceptable, module)?)?;
    module.add_class::<long_answer::LongAnswer>()?;
    module.add_class::<front::Front>()?;
    module.add_class::<front::Request>()?;
    module.add_class::<body::RequestBody>()?;
    module.add_class::<grpc::EndedCall>()?;
    module.add_class::<grpc::GrpcFront>()?;
    module.add_class::<grpc::Notice>()?;
    module.add_class::<limiter::Limiter>()?;
    module.add_class::<plane::Plane>()?;
    module.add_class::<planes::OpenPlanes>()?;
    module.add_class::<planes::Planes>()?;
    module.add_class::<cluster::Cluster>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<records::RecordsTransaction>()?;
    module.add_class::<results::WriteResult>()?;
    module.add_class::<results::Stats>()?;
    module.add_class::<results::Compacted>()?;
    module.add_class::<results::Deleted>()?;
    module.add_class::<results::Upcoming>()?;
    module.add_class::<results::Verified>()?;
    module.add_class::<results::Saved>()?;
    module.add_class::<arrow::ArrowStream>()?;
    module.add_class::<arrow::RowStream>()?;
    module.add_class::<arrow::RowBatch>()?;
    module.add_class::<write_arrow::ArrowWrites>()?;
    module.add_class::<text::TextFormat>()?;
    module.add_class::<adapted::NameMapping>()?;
    accounts::add_to(module)?;
    limits::add_to(module)?;
    service::add_to(module)?;
    errors::add_to(module)
}
