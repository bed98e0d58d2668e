//! Texts of WSGI, which hold a byte in each character.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Decodes bytes to a text of WSGI. Example: the bytes `c3 a9` become the two characters `Ã©`.
pub(crate) fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => PyString::new(py, text),
        _ => PyString::new(py, &bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
    }
}

/// Encodes a text of WSGI. Returns `None` if a character is above U+00FF.
pub(crate) fn bytes_of(text: &str) -> Option<Cow<'_, [u8]>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|each| u8::try_from(each).ok()).collect();
    bytes.map(Cow::Owned)
}

/// Encodes a text of a head.
pub(crate) fn text_bytes<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, [u8]>> {
    let known = text.to_str()?;
    bytes_of(known).ok_or_else(|| PyValueError::new_err("a response header is no Latin-1"))
}
