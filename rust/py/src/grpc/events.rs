//! Events of the front, which Python counts and logs.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use fleetcast_grpc as grpc;

use crate::results::class;

class!(EndedCall of grpc::EndedCall as ended {
    request_id: String = ended.request_id,
    route: String = ended.route.to_string(),
    status: &'static str = ended.status,
    error: Option<String> = ended.error,
    identity: Option<(String, String, String)> = ended.identity,
    client: String = ended.client,
    seconds: f64 = ended.duration.as_secs_f64(),
    bytes_in: u64 = ended.bytes_in,
    bytes_out: u64 = ended.bytes_out,
    bad_key: Option<String> = ended.bad_key,
    fault: Option<String> = ended.fault,
    bound: Option<&'static str> = ended.bound,
    is_over_share: bool = ended.is_over_share,
});

class!(GrpcNotice of grpc::Notice as notice {
    event: &'static str = notice.event,
    problem: Option<String> = notice.problem,
});

/// Converts an event to its class in Python.
pub(super) fn event(py: Python<'_>, event: grpc::Event) -> PyResult<Py<PyAny>> {
    match event {
        grpc::Event::Ended(ended) => EndedCall::from(*ended).into_py_any(py),
        grpc::Event::Notice(notice) => GrpcNotice::from(notice).into_py_any(py),
    }
}
