//! The body of a request: a file for the application, and bytes that the engine reads without a
//! copy.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::shown::show;

/// A whole body.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RequestBody {
    bytes: Vec<u8>,
    /// Index of the next byte to read.
    position: AtomicUsize,
}

/// A body in a form that the engine reads.
pub(crate) enum AnyBody<'py> {
    Bytes(Bound<'py, PyBytes>),
    Request(Bound<'py, RequestBody>),
}

impl<'py> FromPyObject<'_, 'py> for AnyBody<'py> {
    type Error = PyErr;

    fn extract(body: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = body.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned()));
        }
        if let Ok(request) = body.cast::<RequestBody>() {
            return Ok(Self::Request(request.to_owned()));
        }
        let kind = body.get_type().qualname()?;
        let way = if body.is_instance_of::<PyString>() {
            "encode a text with str.encode()"
        } else {
            "encode records with encode_records() for write_json(), or join encode_protobuf() for \
             write_protobuf()"
        };
        Err(PyTypeError::new_err(format!("a body is bytes, not {kind}: {way}")))
    }
}

impl AnyBody<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Request(body) => &body.get().bytes,
        }
    }
}

impl RequestBody {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, position: AtomicUsize::new(0) }
    }

    /// Reads the next bytes. `wanted` gets the rest, cut to `bytes_max` bytes, and says how many to
    /// take.
    fn next(&self, bytes_max: Option<isize>, wanted: impl Fn(&[u8]) -> usize) -> &[u8] {
        let position = self.position.load(Ordering::Relaxed);
        let rest = &self.bytes[position..];
        let bytes_max =
            bytes_max.and_then(|bytes_max| bytes_max.try_into().ok()).unwrap_or(usize::MAX);
        let rest = &rest[..rest.len().min(bytes_max)];
        let next = &rest[..wanted(rest)];
        self.position.store(position + next.len(), Ordering::Relaxed);
        next
    }
}

fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1)
}

#[pymethods]
impl RequestBody {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    #[pyo3(signature = (size=None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.next(size, <[u8]>::len))
    }

    #[pyo3(signature = (size=None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.next(size, line))
    }

    #[pyo3(signature = (hint=None, /))]
    fn readlines<'py>(slf: &Bound<'py, Self>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let _ = hint; // the whole body is in memory
        let lines = PyList::empty(slf.py());
        for line in slf.try_iter()? {
            lines.append(line?)?;
        }
        Ok(lines)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let next = self.next(None, line);
        (!next.is_empty()).then(|| PyBytes::new(py, next))
    }

    #[expect(unsafe_code, reason = "C's buffer protocol is a structure that the callee fills")]
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes `view` to be filled.
        unsafe { show(slf, |body| &body.bytes, view, flags) }
    }
}
