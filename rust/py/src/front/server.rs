//! The front of one worker.

use std::io;
use std::os::fd::RawFd;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_front as front;

use super::environ::same_for_all;
use super::limits::limits_of;
use super::request::{Request, RequestStage};
use crate::arguments::{duration, own};
use crate::gil::leave;
use crate::service::Serving;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Front {
    sockets: front::Front,
    same_for_all: Py<PyDict>,
}

impl Front {
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&front::Front) -> R + Send,
    ) -> PyResult<R> {
        leave(py, || Ok(work(&self.sockets)))
    }
}

#[pymethods]
impl Front {
    #[new]
    #[pyo3(signature = (listeners, *, threads, processes, limits, key_fields, server, settings=None, serving=None))]
    fn new(
        py: Python<'_>,
        listeners: Vec<RawFd>,
        threads: usize,
        processes: usize,
        limits: &Bound<'_, PyAny>,
        key_fields: Vec<String>,
        server: (String, u16),
        settings: Option<RawFd>,
        serving: Option<&Bound<'_, Serving>>,
    ) -> PyResult<Self> {
        let listeners = listeners.into_iter().map(own).collect::<io::Result<Vec<_>>>()?;
        let settings = settings.map(own).transpose()?;
        let limits = limits_of(limits)?;
        let sockets = front::Front::new(
            listeners,
            threads,
            processes,
            limits,
            &key_fields,
            settings.as_ref(),
        )?;
        let same_for_all = same_for_all(py, (&server.0, server.1))?;
        if let Some(serving) = serving {
            sockets.set_fast(serving.get().shared());
        }
        Ok(Self { sockets, same_for_all })
    }

    #[getter]
    fn threads_max(&self) -> usize {
        self.sockets.threads_max()
    }

    #[pyo3(signature = (pipe, /))]
    fn watch(&self, py: Python<'_>, pipe: RawFd) -> PyResult<()> {
        let pipe = own(pipe)?;
        Ok(self.detached(py, |front| front.watch(pipe))??)
    }

    #[pyo3(signature = (limits, /))]
    fn set_limits(&self, limits: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sockets.set_limits(limits_of(limits)?);
        Ok(())
    }

    #[pyo3(signature = (seconds, /))]
    fn turn(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<String>> {
        let patience = duration(seconds)?;
        Ok(self.detached(py, |front| front.turn(patience).map(|()| front.failures()))??)
    }

    #[pyo3(signature = (last=None, /))]
    fn next_request(
        &self,
        py: Python<'_>,
        last: Option<&Bound<'_, Request>>,
    ) -> PyResult<Option<Request>> {
        let last = last.map_or(RequestStage::Gone, |request| request.get().take());
        let next = self.detached(py, move |front| {
            let turn = match last {
                RequestStage::Answered(request, answer) => Some(request.answer(answer)),
                RequestStage::Over(turn) => Some(turn),
                RequestStage::Open(request) => {
                    drop(request); // frees it before the wait for the next request
                    None
                }
                RequestStage::Gone => None,
            };
            front.next_request(turn)
        })?;
        Ok(next.map(|request| Request::new(self.same_for_all.clone_ref(py), request)))
    }

    fn stop_accepting(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, front::Front::stop_accepting)
    }

    fn end_threads(&self) {
        self.sockets.end_threads();
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, front::Front::close)
    }

    fn held(&self) -> (usize, usize, u64, u64) {
        let held = self.sockets.held();
        (held.connections, held.queued, held.unsent_bytes, held.taken)
    }
}
