//! Events of the front, for Python to count and to log.

use pyo3::prelude::*;

use fleetcast_grpc as grpc;

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct EndedCall {
    request_id: String,
    route: String,
    status: &'static str,
    error: Option<String>,
    identity: Option<(String, String, String)>,
    client: String,
    seconds: f64,
    bytes_in: u64,
    bytes_out: u64,
    bad_key: Option<String>,
    fault: Option<String>,
    bound: Option<&'static str>,
    is_over_share: bool,
}

#[pyclass(frozen, get_all, name = "GrpcNotice", module = "fleetcast._core")]
pub(crate) struct Notice {
    event: &'static str,
    problem: Option<String>,
}

/// An event as its class of Python.
pub(super) fn event(py: Python<'_>, event: grpc::Event) -> PyResult<Py<PyAny>> {
    match event {
        grpc::Event::Ended(ended) => Ok(Py::new(py, EndedCall::from(*ended))?.into_any()),
        grpc::Event::Notice(grpc::Notice { event, problem }) => {
            Ok(Py::new(py, Notice { event, problem })?.into_any())
        }
    }
}

impl From<grpc::EndedCall> for EndedCall {
    fn from(ended: grpc::EndedCall) -> Self {
        Self {
            request_id: ended.request_id,
            route: ended.route.to_string(),
            status: ended.status,
            error: ended.error,
            identity: ended.identity,
            client: ended.client,
            seconds: ended.duration.as_secs_f64(),
            bytes_in: ended.bytes_in,
            bytes_out: ended.bytes_out,
            bad_key: ended.bad_key,
            fault: ended.fault,
            bound: ended.bound,
            is_over_share: ended.is_over_share,
        }
    }
}
