//! Converts the limits of connections.

use pyo3::prelude::*;

use fleetcast_front::ConnectionLimits;

use crate::arguments::{at, duration};

/// Reads the limits of `http/server/limits.py` by their names in Python.
pub(crate) fn limits_of(given: &Bound<'_, PyAny>) -> PyResult<ConnectionLimits> {
    let seconds = |name| duration(at(given, name)?);
    Ok(ConnectionLimits {
        body_bytes_max: at(given, "body_bytes_max")?,
        head_bytes_max: at(given, "head_bytes_max")?,
        read_deadline: seconds("read_deadline_seconds")?,
        request_deadline: seconds("request_deadline_seconds")?,
        idle: seconds("idle_seconds")?,
        unread_body: seconds("unread_body_seconds")?,
        drain: seconds("drain_seconds")?,
        drain_bytes_max: at(given, "drain_bytes_max")?,
        answer: seconds("answer_seconds")?,
        answer_bytes_per_second_min: at(given, "answer_bytes_per_second_min")?,
        stop_idle: seconds("stop_idle_seconds")?,
        stop_request: seconds("stop_request_seconds")?,
        connections_max: at(given, "connections_max")?,
        body_bytes_under_way_max: at(given, "body_bytes_under_way_max")?,
        unsent_bytes_max: at(given, "unsent_bytes_max")?,
        unsent_bytes_per_tenant_max: at(given, "unsent_bytes_per_tenant_max")?,
        unsent_wait: seconds("unsent_wait_seconds")?,
        takes_chunks: at(given, "takes_chunks")?,
    })
}
