//! Answers that are computed while their clients receive them.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use fleetcast_core::model::chunks::AnswerBody;
use fleetcast_service as service;

use crate::gil::{TakeCell, asked};
use crate::pieces::{view, views};

/// Returns the body of an answer: a list of pieces, or a `LongAnswer`.
pub(crate) fn body(py: Python<'_>, body: AnswerBody) -> PyResult<Bound<'_, PyAny>> {
    match body {
        AnswerBody::Whole(pieces) => views(py, pieces)?.into_bound_py_any(py),
        AnswerBody::Long(pieces) => {
            let answer = service::LongAnswer::new(pieces);
            LongAnswer(TakeCell::new(answer)).into_bound_py_any(py)
        }
    }
}

/// A long answer as Python sees it: an iterator, which Python can also hand to the front.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct LongAnswer(TakeCell<service::LongAnswer>);

impl LongAnswer {
    /// Takes the answer. Returns `None` if it was taken before.
    pub(crate) fn take(&self) -> Option<service::LongAnswer> {
        self.0.take()
    }
}

#[pymethods]
impl LongAnswer {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut answer) = self.take() else { return Ok(None) };
        let Some(piece) = py.detach(|| answer.next_piece()) else { return Ok(None) };
        *self.0.lock() = Some(answer);
        view(py, piece).map(Some)
    }

    #[pyo3(signature = (call, /))]
    fn when_over(&self, call: Py<PyAny>) {
        let called = move |bytes: u64| drop(asked(|py| call.call1(py, (bytes,))));
        if let Some(answer) = &mut *self.0.lock() {
            answer.when_over(Box::new(called));
        }
    }
}
