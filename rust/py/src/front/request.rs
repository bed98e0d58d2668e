//! A request while a thread of Python holds it.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyMemoryView, PyString};

use fleetcast_core::model::error::Error;
use fleetcast_front::{self as front, Answer, LineBreak, OutgoingBody, ParsedRequest, ServeTurn};

use super::environ::add_request;
use crate::errors::store_error;
use crate::latin1::text_bytes;
use crate::long_answer::LongAnswer;
use crate::pieces::Piece;
use crate::service::Decision;

/// A piece of the engine that the front keeps until it has sent the bytes.
struct KeptPiece(Py<Piece>);

impl AsRef<[u8]> for KeptPiece {
    fn as_ref(&self) -> &[u8] {
        self.0.get().bytes()
    }
}

/// A request, and how far its handling has come.
pub(crate) enum RequestStage {
    Open(front::Request),
    /// The answer is ready. The front sends it when the thread asks for its next request.
    Answered(front::Request, Answer),
    /// The event loop takes over.
    Over(ServeTurn),
    Gone,
}

#[pyclass(frozen, name = "FrontRequest", module = "fleetcast._core")]
pub(crate) struct Request {
    same_for_all: Py<PyDict>,
    stage: Mutex<RequestStage>,
}

impl Request {
    pub(crate) fn new(same_for_all: Py<PyDict>, request: front::Request) -> Self {
        Self { same_for_all, stage: Mutex::new(RequestStage::Open(request)) }
    }

    /// Takes the stage, and leaves [`RequestStage::Gone`].
    pub(crate) fn take(&self) -> RequestStage {
        mem::replace(&mut *self.lock(), RequestStage::Gone)
    }

    fn lock(&self) -> MutexGuard<'_, RequestStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the open request. `work` returns the next stage.
    fn change<R>(&self, work: impl FnOnce(front::Request) -> (RequestStage, R)) -> PyResult<R> {
        let mut stage = self.lock();
        match mem::replace(&mut *stage, RequestStage::Gone) {
            RequestStage::Open(request) => {
                let (next, result) = work(request);
                *stage = next;
                Ok(result)
            }
            other => {
                *stage = other;
                Err(PyRuntimeError::new_err("the request has its answer"))
            }
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut front::Request) -> R) -> PyResult<R> {
        self.change(|mut request| {
            let result = work(&mut request);
            (RequestStage::Open(request), result)
        })
    }

    fn finish(&self, answer: Answer) -> PyResult<()> {
        self.change(|request| (RequestStage::Answered(request, answer), ()))
    }
}

#[pymethods]
impl Request {
    #[getter]
    fn malformed(&self) -> PyResult<Option<&'static str>> {
        self.with(|request| match request.asked() {
            ParsedRequest::Malformed(refusal) => Some(refusal.code()),
            ParsedRequest::Whole { .. } => None,
        })
    }

    #[getter]
    fn peer_address(&self) -> PyResult<String> {
        self.with(|request| request.peer().address.to_string())
    }

    fn environ<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let environ = this.same_for_all.bind(py).copy()?;
        this.with(|request| add_request(&environ, request))??;
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
        self.change(|request| match request.await_body() {
            Ok(turn) => (RequestStage::Over(turn), true),
            Err(request) => (RequestStage::Open(*request), false),
        })
    }

    fn answer(
        &self,
        status: &Bound<'_, PyString>,
        fields: Vec<(Bound<'_, PyString>, Bound<'_, PyString>)>,
        chunks: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut latin1 = Vec::with_capacity(fields.len());
        for (name, value) in &fields {
            latin1.push((text_bytes(name)?, text_bytes(value)?));
        }
        let fields = latin1.iter().map(|(name, value)| (&**name, &**value));
        let status = text_bytes(status)?;
        let body = body_of(chunks)?;
        let answer = self.with(|request| request.compose(&status, fields, body))?;
        self.finish(
            answer.map_err(|LineBreak| {
                PyValueError::new_err("a response header holds a line break")
            })?,
        )
    }

    #[pyo3(signature = (whole_answer, /))]
    fn refuse(&self, whole_answer: &[u8]) -> PyResult<()> {
        self.with(front::Request::end_connection)?;
        self.finish(Answer { head: whole_answer.to_vec(), ..Answer::default() })
    }
}

/// Makes the exception for a failure to serve a request.
fn exception_of(py: Python<'_>, failure: front::BoxError) -> Py<PyAny> {
    let error = failure
        .downcast::<Error>()
        .map_or_else(|other| Error::Internal { message: other.to_string() }, |error| *error);
    store_error(&error).into_value(py).into_any()
}

fn body_of(chunks: &Bound<'_, PyAny>) -> PyResult<OutgoingBody> {
    if let Ok(long) = chunks.cast::<LongAnswer>() {
        let rest = long.get().take();
        let rest = rest.ok_or_else(|| PyRuntimeError::new_err("the answer was taken"))?;
        return Ok(OutgoingBody::Rest(Box::new(rest)));
    }
    let piece = |chunk: PyResult<Bound<'_, PyAny>>| {
        let chunk = chunk?;
        if let Ok(bytes) = chunk.extract::<PyBackedBytes>() {
            return Ok(Box::new(bytes) as front::Piece);
        }
        let buffer = PyBuffer::<u8>::get(&chunk)?;
        Ok(match piece_of(&chunk, buffer.len_bytes())? {
            Some(piece) => Box::new(KeptPiece(piece)),
            None => Box::new(buffer.to_vec(chunk.py())?),
        })
    };
    Ok(OutgoingBody::Pieces(chunks.try_iter()?.map(piece).collect::<PyResult<_>>()?))
}

/// Returns the piece of the engine that a `memoryview` shows, if it shows the whole piece.
fn piece_of(chunk: &Bound<'_, PyAny>, bytes: usize) -> PyResult<Option<Py<Piece>>> {
    let Ok(view) = chunk.cast::<PyMemoryView>() else { return Ok(None) };
    let object = view.getattr(intern!(chunk.py(), "obj"))?.cast_into::<Piece>().ok();
    Ok(object.filter(|piece| piece.get().bytes().len() == bytes).map(Bound::unbind))
}
