//! A request in the hands of one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_core::model::error::Error;
use fleetcast_front::{self as front, Answer, Asked, Turn};

use super::answer::{answer, long_answer};
use super::environ::Environs;
use crate::errors::store_error;
use crate::long_answer::LongAnswer;
use crate::service::Decision;

/// Statuses of answers that have no body.
const BODILESS: [&str; 2] = ["204", "304"];

/// A request, and what has become of it.
pub(crate) enum Stage {
    Open(front::Request),
    /// Its answer is there, and is sent when the thread comes for its next request.
    Answered(front::Request, Answer),
    /// Left to the loop.
    Over(Turn),
    Gone,
}

#[pyclass(frozen, name = "FrontRequest", module = "fleetcast._core")]
pub(crate) struct Request {
    environs: Arc<Environs>,
    stage: Mutex<Stage>,
}

impl Request {
    pub(crate) fn new(environs: &Arc<Environs>, request: front::Request) -> Self {
        Self { environs: Arc::clone(environs), stage: Mutex::new(Stage::Open(request)) }
    }

    /// Takes out what has become of it.
    pub(crate) fn take(&self) -> Stage {
        std::mem::replace(&mut *self.lock(), Stage::Gone)
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, work: impl FnOnce(&mut front::Request) -> R) -> PyResult<R> {
        match &mut *self.lock() {
            Stage::Open(request) => Ok(work(request)),
            _ => Err(PyRuntimeError::new_err("the request has its answer")),
        }
    }

    fn answer_long(
        &self,
        status: &Bound<'_, PyString>,
        fields: &[(Bound<'_, PyString>, Bound<'_, PyString>)],
        long: &LongAnswer,
    ) -> PyResult<()> {
        let rest = long.take().ok_or_else(|| PyRuntimeError::new_err("the answer was taken"))?;
        let (knows_chunks, keep) = self.with(|request| {
            let knows_chunks = request.head().is_some_and(|head| head.minor_version() > 0);
            if !knows_chunks {
                request.end_connection(); // its end is that of the body
            }
            (knows_chunks, request.keeps())
        })?;
        self.finish(long_answer(status, fields, Box::new(rest), knows_chunks, keep)?)
    }

    fn finish(&self, answer: Answer) -> PyResult<()> {
        let mut stage = self.lock();
        match std::mem::replace(&mut *stage, Stage::Gone) {
            Stage::Open(request) => {
                *stage = Stage::Answered(request, answer);
                Ok(())
            }
            other => {
                *stage = other;
                Err(PyRuntimeError::new_err("the request has its answer"))
            }
        }
    }
}

#[pymethods]
impl Request {
    #[getter]
    fn malformed(&self) -> PyResult<Option<&'static str>> {
        self.with(|request| match request.asked() {
            Asked::Malformed(refusal) => Some(refusal.code()),
            Asked::Whole { .. } => None,
        })
    }

    #[getter]
    fn peer_address(&self) -> PyResult<String> {
        self.with(|request| request.peer().address.to_string())
    }

    fn environ<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let environ = this.with(|request| this.environs.of(py, request))??;
        let decision = this.with(front::Request::take_decision)?;
        if let Some(decision) = decision.and_then(|decision| decision.downcast().ok()) {
            let decision = Bound::new(py, Decision(*decision))?;
            environ.set_item(intern!(py, "fleetcast.decision"), decision)?;
        } else {
            let claim = slf.getattr(intern!(py, "claim"))?;
            environ.set_item(intern!(py, "fleetcast.claim"), claim)?;
        }
        if let Some(failure) = this.with(front::Request::take_failure)? {
            environ.set_item(intern!(py, "fleetcast.failed"), exception_of(py, failure))?;
        }
        Ok(environ)
    }

    #[pyo3(signature = (account_id, /))]
    fn claim(&self, account_id: &str) -> PyResult<bool> {
        self.with(|request| request.claim(&account_id.into()))
    }

    fn await_body(&self) -> PyResult<bool> {
        let mut stage = self.lock();
        match std::mem::replace(&mut *stage, Stage::Gone) {
            Stage::Open(request) => match request.await_body() {
                Ok(turn) => {
                    *stage = Stage::Over(turn);
                    Ok(true)
                }
                Err(request) => {
                    *stage = Stage::Open(*request);
                    Ok(false)
                }
            },
            other => {
                *stage = other;
                Err(PyRuntimeError::new_err("the request has its answer"))
            }
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a list over as it is")]
    fn answer(
        &self,
        status: Bound<'_, PyString>,
        fields: Vec<(Bound<'_, PyString>, Bound<'_, PyString>)>,
        chunks: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if let Ok(long) = chunks.cast::<LongAnswer>() {
            return self.answer_long(&status, &fields, long.get());
        }
        let chunks: Vec<Bound<'_, PyAny>> = chunks.extract()?;
        let (is_head, keep) = self.with(|request| {
            let is_head = request.head().is_some_and(|head| head.method() == "HEAD");
            (is_head, request.keeps())
        })?;
        let code = status.to_str()?.get(..3).unwrap_or_default();
        let bodiless = is_head || BODILESS.contains(&code);
        self.finish(answer(&status, &fields, &chunks, bodiless, keep)?)
    }

    #[pyo3(signature = (whole_answer, /))]
    fn refuse(&self, whole_answer: &[u8]) -> PyResult<()> {
        self.with(front::Request::end_connection)?;
        self.finish(Answer { head: whole_answer.to_vec(), ..Answer::default() })
    }
}

/// The exception for what came of serving a request.
fn exception_of(py: Python<'_>, failure: front::Failure) -> Py<PyAny> {
    let error = failure
        .downcast::<Error>()
        .map_or_else(|other| Error::Internal { message: other.to_string() }, |error| *error);
    store_error(&error).into_value(py).into_any()
}
