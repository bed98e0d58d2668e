//! The body of a request, which the engine reads without a copy.

use std::ffi::c_int;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::shown::show;

/// A whole body.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RequestBody {
    bytes: Vec<u8>,
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
        Self { bytes }
    }
}

#[pymethods]
impl RequestBody {
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
        unsafe { show(slf, |body| &body.bytes, view, flags) }
    }
}
