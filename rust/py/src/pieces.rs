//! Bodies and pieces of answers as Python sees them. A long piece is not copied: Python reads it in
//! place.

use std::ffi::c_int;
use std::mem;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use fleetcast_core::model::chunks;

use crate::shown::show;

/// Shorter pieces, in bytes, become `bytes`: a copy costs less than two more objects. Example: a
/// piece of 20,000 bytes becomes a `memoryview`.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The body of a request, or a long piece of an answer. Python reads it through a `memoryview`.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Piece {
    bytes: Vec<u8>,
}

impl Piece {
    pub(crate) const fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[pymethods]
impl Piece {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    #[expect(unsafe_code, reason = "C's buffer protocol is a structure that the callee fills")]
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes `view` to be filled.
        unsafe { show(slf, Self::bytes, view, flags) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        chunks::give_back(mem::take(&mut self.bytes));
    }
}

/// Returns a piece of an answer: `bytes` if it is short, else a `memoryview`.
pub(crate) fn view(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Bound<'_, PyAny>> {
    if bytes.len() < COPIED_BYTES_MAX {
        return Ok(PyBytes::new(py, &bytes).into_any());
    }
    let piece = Bound::new(py, Piece::new(bytes))?;
    Ok(PyMemoryView::from(piece.as_any())?.into_any())
}

pub(crate) fn views(py: Python<'_>, pieces: Vec<Vec<u8>>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    pieces.into_iter().map(|piece| view(py, piece)).collect()
}
