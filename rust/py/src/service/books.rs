//! Accounts of requests: indexes and names of Python, lines of the access log.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;

use fleetcast_service::books::{
    self, Counters, Histogram, Indexes, RequestIndexes, Source, Status, WriteIndexes, write_line,
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

/// `metrics.surfaces.Books`.
#[derive(FromPyObject)]
pub(crate) struct Books {
    process: String,
    counters: i32,
    counters_bytes: usize,
    bounds_seconds: Vec<f64>,
    requests: Py<PyAny>,
    writes: Py<PyAny>,
    answered: Option<usize>,
}

impl Books {
    /// The books of the engine that these describe.
    #[expect(unsafe_code, reason = "descriptors are numbers in Python")]
    pub(crate) fn open(self) -> PyResult<Arc<books::Books>> {
        // SAFETY: it is borrowed for one call, which fails if it is not open.
        let memory = unsafe { BorrowedFd::borrow_raw(self.counters) };
        let counters = Counters::map(memory, self.counters_bytes)?;
        let indexes = PyIndexes {
            of_requests: self.requests,
            of_writes: self.writes,
            bounds: self.bounds_seconds.into(),
        };
        let books = books::Books::new(counters, Box::new(indexes), self.answered, &self.process);
        Ok(Arc::new(books))
    }
}

/// The methods of Python that find indexes by what they count.
struct PyIndexes {
    of_requests: Py<PyAny>,
    of_writes: Py<PyAny>,
    /// Upper bounds of durations in seconds.
    bounds: Arc<[f64]>,
}

impl PyIndexes {
    fn histogram(&self, found: PyHistogram) -> Histogram {
        let PyHistogram { buckets, sum } = found;
        Histogram { bounds: Arc::clone(&self.bounds), buckets: buckets.into(), sum }
    }
}

/// The result of a call of Python; a fault is shown, and there is none.
pub(crate) fn asked<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    Python::attach(|py| call(py).map_err(|error| error.write_unraisable(py, None)).ok())
}

impl Indexes for PyIndexes {
    fn of_requests(
        &self,
        method: &str,
        route: &str,
        status: Status<'_>,
        account: &str,
    ) -> Option<RequestIndexes> {
        let found: PyRequestIndexes = asked(|py| {
            let found = match status {
                Status::Http(status) => {
                    self.of_requests.call1(py, (method, route, status, account))
                }
                Status::Grpc(status) => {
                    self.of_requests.call1(py, (method, route, status, account))
                }
            };
            found?.extract(py)
        })?;
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
