//! Accounts of requests: indexes and names of Python, lines of the access log.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;

use fleetcast_service::books::{
    self, Histogram, Indexes, RequestIndexes, Source, Status, WriteIndexes, write_line,
};

use crate::results::WriteResult;

/// `metrics.surfaces.RequestIndexes`.
#[derive(FromPyObject)]
struct PyRequestIndexes {
    in_flight: usize,
    total: usize,
    usage: usize,
    seconds: PyHistogram,
}

/// `metrics.surfaces.WriteIndexes`.
#[derive(FromPyObject)]
struct PyWriteIndexes {
    accepted: usize,
    rejected: usize,
    clamped: usize,
    no_entity: usize,
    other_measurement: usize,
    commit_seconds: PyHistogram,
}

/// `metrics.counters.Histogram`.
#[derive(FromPyObject)]
struct PyHistogram {
    buckets: Vec<usize>,
    sum: usize,
}

/// The methods of Python that find indexes by what they count.
pub(super) struct PyIndexes {
    pub(super) of_requests: Py<PyAny>,
    pub(super) of_writes: Py<PyAny>,
    /// Upper bounds of durations in seconds.
    pub(super) bounds: Arc<[f64]>,
}

impl PyIndexes {
    fn histogram(&self, found: PyHistogram) -> Histogram {
        let PyHistogram { buckets, sum } = found;
        Histogram { bounds: Arc::clone(&self.bounds), buckets: buckets.into(), sum }
    }
}

/// The result of a call of Python; a fault is shown, and the request is counted nowhere.
fn asked<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    Python::attach(|py| call(py).map_err(|error| error.write_unraisable(py, None)).ok())
}

impl Indexes for PyIndexes {
    fn of_requests(
        &self,
        method: &str,
        route: &str,
        status: u16,
        account: &str,
    ) -> Option<RequestIndexes> {
        let found: PyRequestIndexes =
            asked(|py| self.of_requests.call1(py, (method, route, status, account))?.extract(py))?;
        let PyRequestIndexes { in_flight, total, usage, seconds } = found;
        Some(RequestIndexes { in_flight, total, usage, seconds: self.histogram(seconds) })
    }

    fn of_writes(&self, tenant: &str) -> Option<WriteIndexes> {
        let found: PyWriteIndexes = asked(|py| self.of_writes.call1(py, (tenant,))?.extract(py))?;
        let PyWriteIndexes { accepted, rejected, clamped, no_entity, other_measurement, .. } =
            found;
        let commit_seconds = self.histogram(found.commit_seconds);
        Some(WriteIndexes {
            accepted,
            rejected,
            clamped,
            no_entity,
            other_measurement,
            commit_seconds,
        })
    }
}

/// `log_lines.Served`.
#[derive(FromPyObject)]
pub(crate) struct Served {
    request_id: String,
    method: String,
    route: String,
    status: PyStatus,
    error: Option<String>,
    tenant: Option<String>,
    key_id: Option<String>,
    client: String,
    seconds: f64,
    bytes_in: u64,
    bytes_out: u64,
    process: String,
}

#[derive(FromPyObject)]
enum PyStatus {
    Http(u16),
    Grpc(String),
}

/// Writes a line of the access log.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands an argument over as it is")]
pub(crate) fn write_served(served: Served) {
    let status = match &served.status {
        PyStatus::Http(status) => Status::Http(*status),
        PyStatus::Grpc(name) => Status::Grpc(name),
    };
    let line = books::Served {
        request_id: &served.request_id,
        method: &served.method,
        route: &served.route,
        status,
        error: served.error.as_deref(),
        tenant: served.tenant.as_deref(),
        key_id: served.key_id.as_deref(),
        client: &served.client,
        duration: Duration::try_from_secs_f64(served.seconds).unwrap_or_default(),
        bytes_in: served.bytes_in,
        bytes_out: served.bytes_out,
        process: &served.process,
    };
    write_line(&line.line(SystemTime::now()));
}

/// Notes the records of a batch that no read shows.
#[pyfunction]
pub(crate) fn note_unreadable(tenant: &str, key_id: &str, process: &str, result: &WriteResult) {
    books::note_unreadable(&Source { tenant, key_id, process }, result.written());
}
