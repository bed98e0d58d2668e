//! Bytes of the engine that Python reads where they lie.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{PyClass, ffi};

/// Shows bytes of `owner` read-only, as its class's `__getbuffer__`.
///
/// # Errors
/// `BufferError` for who wants to write.
///
/// # Safety
/// `view` is one that Python asks to be filled.
#[expect(unsafe_code, reason = "C's buffer protocol is a structure that the callee fills")]
pub(crate) unsafe fn show<T: PyClass<Frozen = True> + Sync>(
    owner: &Bound<'_, T>,
    bytes: impl for<'a> FnOnce(&'a T) -> &'a [u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let bytes = bytes(owner.get());
    let length = bytes.len().cast_signed();
    let start = bytes.as_ptr().cast_mut().cast();
    // SAFETY: the caller vouches for `view`, which holds a reference to `owner` from now on. Objects of
    // a frozen class are only lent, for as long as there is a reference; so the bytes that are lent
    // with one stay where and as they are until `view` is released. They are shown read-only (1).
    let outcome = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, 1, flags) };
    if outcome == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
