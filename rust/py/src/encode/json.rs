//! Records as the JSON body of a write.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use fleetcast_core::model::json;

/// Greatest depth of a list or a dict. Python's encoder gets deeper records, as it detects cycles.
/// Example: the list of records is at depth 0, the `fields` of a record are at depth 2.
const DEPTH_MAX: usize = 8;

/// Encodes `records`. Returns `None` if a record holds a value that Python's encoder must write or
/// refuse.
#[pyfunction]
#[pyo3(signature = (records, *, datetimes))]
pub(crate) fn encode_json(
    records: &Bound<'_, PyList>,
    datetimes: bool,
) -> PyResult<Option<Vec<u8>>> {
    let mut encoder = Encoder { out: Vec::new(), datetimes };
    let is_whole = encoder.value(records.as_any(), 0)?;
    Ok(is_whole.then_some(encoder.out))
}

struct Encoder {
    out: Vec<u8>,
    datetimes: bool,
}

impl Encoder {
    /// Appends a value of a plain type. Returns false if the value has any other type.
    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
        if let Ok(value) = value.cast_exact::<PyFloat>() {
            let value = value.value();
            if value.is_finite() {
                json::write_f64(&mut self.out, value);
            }
            return Ok(value.is_finite());
        }
        if let Ok(text) = value.cast_exact::<PyString>() {
            return Ok(self.text(text));
        }
        if let Ok(value) = value.cast_exact::<PyBool>() {
            json::write_bool(&mut self.out, value.is_true());
        } else if value.cast_exact::<PyInt>().is_ok() {
            let Ok(value) = value.extract() else { return Ok(false) };
            json::write_i64(&mut self.out, value);
        } else if depth > DEPTH_MAX {
            return Ok(false);
        } else if let Ok(items) = value.cast_exact::<PyDict>() {
            return self.object(items, depth + 1);
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            return self.array(items.iter(), depth + 1);
        } else if let Ok(items) = value.cast_exact::<PyTuple>() {
            return self.array(items.iter(), depth + 1);
        } else if value.is_none() {
            self.out.extend_from_slice(b"null");
        } else if self.datetimes && value.cast_exact::<PyDateTime>().is_ok() {
            let text = value.call_method0(intern!(value.py(), "isoformat"))?;
            return Ok(text.cast_exact::<PyString>().is_ok_and(|text| self.text(text)));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn object(&mut self, items: &Bound<'_, PyDict>, depth: usize) -> PyResult<bool> {
        let mut before = b'{';
        for (key, value) in items {
            self.out.push(before);
            before = b',';
            let Ok(key) = key.cast_exact::<PyString>() else { return Ok(false) };
            if !self.text(key) {
                return Ok(false);
            }
            self.out.push(b':');
            if !self.value(&value, depth)? {
                return Ok(false);
            }
        }
        self.out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
        Ok(true)
    }

    fn array<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<bool> {
        let mut before = b'[';
        for value in items {
            self.out.push(before);
            before = b',';
            if !self.value(&value, depth)? {
                return Ok(false);
            }
        }
        self.out.extend_from_slice(if before == b'[' { b"[]" } else { b"]" });
        Ok(true)
    }

    /// Appends a text. Returns false if the text holds half of a surrogate pair, which UTF-8 cannot
    /// write.
    fn text(&mut self, text: &Bound<'_, PyString>) -> bool {
        match text.to_str() {
            Ok(text) => {
                json::write_string(&mut self.out, text);
                true
            }
            Err(_) => false,
        }
    }
}
