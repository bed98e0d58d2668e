//! The body of a request, which the engine reads without a copy.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::pieces::Piece;

/// A body in a form that the engine reads.
pub(crate) enum AnyBody<'py> {
    Bytes(Bound<'py, PyBytes>),
    Piece(Bound<'py, Piece>),
}

impl<'py> FromPyObject<'_, 'py> for AnyBody<'py> {
    type Error = PyErr;

    fn extract(body: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = body.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned()));
        }
        if let Ok(piece) = body.cast::<Piece>() {
            return Ok(Self::Piece(piece.to_owned()));
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
            Self::Piece(piece) => piece.get().bytes(),
        }
    }
}
