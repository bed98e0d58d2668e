//! Shows bytes of the engine to Python without a copy.

use std::ffi::c_int;

use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{PyClass, ffi};

/// Shows bytes of `owner` read-only, to implement `__getbuffer__` of its class.
///
/// # Errors
/// Raises `BufferError` if the caller asks to write.
///
/// # Safety
/// `view` must be a buffer that Python passes to be filled.
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
    // SAFETY: the caller vouches for `view`. From now on `view` holds a reference to `owner`.
    // Objects of a frozen class are only lent while a reference exists. The bytes therefore stay in
    // place and unchanged until `view` is released. The argument 1 makes them read-only.
    let outcome = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, 1, flags) };
    if outcome == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
