//! Limits of connections on their way in.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use fleetcast_front::ConnectionLimits;

/// `http/server/limits.py`, by the names that it has there.
#[derive(FromPyObject)]
pub(crate) struct Limits {
    body_bytes_max: u64,
    head_bytes_max: usize,
    read_deadline_seconds: f64,
    request_deadline_seconds: f64,
    idle_seconds: f64,
    unread_body_seconds: f64,
    drain_seconds: f64,
    drain_bytes_max: u64,
    answer_seconds: f64,
    answer_bytes_per_second_min: u64,
    stop_idle_seconds: f64,
    stop_request_seconds: f64,
    connections_max: u64,
    body_bytes_under_way_max: u64,
    unsent_bytes_max: u64,
    unsent_bytes_per_tenant_max: u64,
    unsent_wait_seconds: f64,
    takes_chunks: bool,
}

impl TryFrom<Limits> for ConnectionLimits {
    type Error = PyErr;

    fn try_from(limits: Limits) -> PyResult<Self> {
        Ok(Self {
            body_bytes_max: limits.body_bytes_max,
            head_bytes_max: limits.head_bytes_max,
            read_deadline: duration(limits.read_deadline_seconds)?,
            request_deadline: duration(limits.request_deadline_seconds)?,
            idle: duration(limits.idle_seconds)?,
            unread_body: duration(limits.unread_body_seconds)?,
            drain: duration(limits.drain_seconds)?,
            drain_bytes_max: limits.drain_bytes_max,
            answer: duration(limits.answer_seconds)?,
            answer_bytes_per_second_min: limits.answer_bytes_per_second_min,
            stop_idle: duration(limits.stop_idle_seconds)?,
            stop_request: duration(limits.stop_request_seconds)?,
            connections_max: limits.connections_max,
            body_bytes_under_way_max: limits.body_bytes_under_way_max,
            unsent_bytes_max: limits.unsent_bytes_max,
            unsent_bytes_per_tenant_max: limits.unsent_bytes_per_tenant_max,
            unsent_wait: duration(limits.unsent_wait_seconds)?,
            takes_chunks: limits.takes_chunks,
        })
    }
}

pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    let of = Duration::try_from_secs_f64(seconds);
    of.map_err(|_| PyValueError::new_err(format!("{seconds} is no number of seconds to wait")))
}
