//! Answers that are made as their clients take them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use fleetcast_core::model::chunks::{self, LongPieces};
use fleetcast_front::Rest;

use crate::pieces::views;

/// A long answer as Python sees it: an iterator, or something to hand over to the front.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct LongAnswer(Mutex<Option<Making>>);

/// A long answer that is being made.
pub(crate) struct Making {
    pieces: Box<dyn LongPieces>,
    /// Bytes that were made.
    bytes: u64,
    /// Called with that when it is over, or given up.
    when_over: Option<Py<PyAny>>,
}

/// A piece that is filled anew once it was sent.
struct Sent(Vec<u8>);

impl LongAnswer {
    pub(crate) fn new(pieces: Box<dyn LongPieces>) -> Self {
        Self(Mutex::new(Some(Making { pieces, bytes: 0, when_over: None })))
    }

    /// Takes it out, so that nothing is left here.
    pub(crate) fn take(&self) -> Option<Making> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Making>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LongAnswer {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut making) = self.take() else { return Ok(None) };
        let Some(piece) = py.detach(|| making.next_piece()) else { return Ok(None) };
        *self.lock() = Some(making);
        Ok(views(py, vec![piece])?.pop())
    }

    #[pyo3(signature = (call, /))]
    fn when_over(&self, call: Py<PyAny>) {
        if let Some(making) = &mut *self.lock() {
            making.when_over = Some(call);
        }
    }
}

impl Making {
    fn next_piece(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.next()?;
        self.bytes += piece.len() as u64;
        Some(piece)
    }
}

impl Rest for Making {
    fn next(&mut self) -> Option<fleetcast_front::Piece> {
        Some(Box::new(Sent(self.next_piece()?)))
    }

    fn held_bytes(&self) -> u64 {
        self.pieces.held_bytes() as u64
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let Some(call) = self.when_over.take() else { return };
        Python::attach(|py| {
            if let Err(error) = call.call1(py, (self.bytes,)) {
                error.write_unraisable(py, None);
            }
        });
    }
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        chunks::give_back(std::mem::take(&mut self.0));
    }
}
