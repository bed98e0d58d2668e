//! Accounts of requests: indexes and names that Python chose, and lines of the access log.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use fleetcast_service::accounting::{
    self, Accounting, AnswerStatus, Counters, Histogram, Indexes, RecordSource, RequestIndexes,
    RequestLabels, WriteIndexes,
};

use crate::arguments::at;
use crate::gil::asked;
use crate::results::WriteResult;

/// Opens the engine's accounting. `metrics.surfaces.EngineAccounting` describes its members.
#[expect(unsafe_code, reason = "descriptors are numbers in Python")]
pub(crate) fn open_accounting(accounting: &Bound<'_, PyAny>) -> PyResult<Arc<Accounting>> {
    // SAFETY: the descriptor is borrowed for this call only, and the call fails if it is not open.
    // If we duplicated the descriptor, closing the copy would release the process's locks on rows
    // of counters (POSIX).
    let memory = unsafe { BorrowedFd::borrow_raw(at(accounting, "counters")?) };
    let counters = Counters::map(memory, at(accounting, "counters_bytes")?)?;
    let indexes = PyIndexes {
        of_requests: at(accounting, "requests")?,
        of_writes: at(accounting, "writes")?,
        of_cpu: at(accounting, "cpu")?,
        bounds: at::<Vec<f64>>(accounting, "bounds_seconds")?.into(),
    };
    let (answered, process) = (at(accounting, "answered")?, at::<String>(accounting, "process")?);
    Ok(Arc::new(Accounting::new(counters, Box::new(indexes), answered, &process)))
}

/// Methods of Python that return the indexes of counters, by the labels they count.
struct PyIndexes {
    of_requests: Py<PyAny>,
    of_writes: Py<PyAny>,
    of_cpu: Py<PyAny>,
    /// Upper bounds of durations, in seconds.
    bounds: Arc<[f64]>,
}

impl PyIndexes {
    fn histogram(&self, found: &Bound<'_, PyAny>, name: &str) -> PyResult<Histogram> {
        let found = found.getattr(name)?;
        let buckets = at::<Vec<usize>>(&found, "buckets")?.into();
        Ok(Histogram { bounds: Arc::clone(&self.bounds), buckets, sum: at(&found, "sum")? })
    }
}

impl Indexes for PyIndexes {
    fn of_requests(&self, labels: &RequestLabels) -> Option<RequestIndexes> {
        asked(|py| {
            let status = match labels.status {
                AnswerStatus::Http(status) => status.into_py_any(py)?,
                AnswerStatus::Grpc(status) => status.into_py_any(py)?,
            };
            let RequestLabels { method, route, code, is_over_share, .. } = *labels;
            let key = labels.refused_key.as_ref().map(|(tenant, key)| (&**tenant, &**key));
            let account = labels.account.as_deref();
            let labels = (method, route, status, account, code, key, is_over_share);
            let found = self.of_requests.bind(py).call1(labels)?;
            Ok(RequestIndexes {
                in_flight: at(&found, "in_flight")?,
                counts: at::<Vec<usize>>(&found, "counts")?.into(),
                seconds: self.histogram(&found, "seconds")?,
            })
        })
    }

    fn of_cpu(&self, tenant: &str) -> Option<usize> {
        asked(|py| self.of_cpu.bind(py).call1((tenant,))?.extract())
    }

    fn of_writes(&self, tenant: &str) -> Option<WriteIndexes> {
        asked(|py| {
            let found = self.of_writes.bind(py).call1((tenant,))?;
            Ok(WriteIndexes {
                accepted: at(&found, "accepted")?,
                rejected: at(&found, "rejected")?,
                clamped: at(&found, "clamped")?,
                no_entity: at(&found, "no_entity")?,
                other_measurement: at(&found, "other_measurement")?,
                commit_seconds: self.histogram(&found, "commit_seconds")?,
            })
        })
    }
}

#[derive(FromPyObject)]
pub(crate) enum PyStatus {
    Http(u16),
    Grpc(String),
}

/// Writes a line of the access log.
#[pyfunction]
pub(crate) fn write_served(
    request_id: &str,
    method: &str,
    route: &str,
    status: PyStatus,
    error: Option<&str>,
    tenant: Option<&str>,
    key_id: Option<&str>,
    client: &str,
    seconds: f64,
    bytes_in: u64,
    bytes_out: u64,
    process: &str,
) {
    let status = match &status {
        PyStatus::Http(status) => AnswerStatus::Http(*status),
        PyStatus::Grpc(name) => AnswerStatus::Grpc(name),
    };
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let whose = accounting::ServedRequest {
        request_id,
        method,
        route,
        status,
        error,
        tenant,
        key_id,
        client,
        duration,
        bytes_in,
        bytes_out,
        process,
    };
    accounting::write_served(&whose);
}

#[pyfunction]
#[pyo3(signature = (client, /))]
pub(crate) fn refusal_is_logged(client: &str) -> bool {
    accounting::refusal_is_logged(client)
}

#[pyfunction]
#[pyo3(signature = (process, /))]
pub(crate) fn name_process(process: &str) {
    accounting::name_process(process);
}

#[pyfunction]
pub(crate) fn tell_left_out(py: Python<'_>) {
    py.detach(accounting::tell_left_out);
}

/// Logs the records of a batch that no read can show.
#[pyfunction]
pub(crate) fn note_unreadable(tenant: &str, key_id: &str, process: &str, result: &WriteResult) {
    accounting::note_unreadable(&RecordSource { tenant, key_id, process }, result.written());
}
