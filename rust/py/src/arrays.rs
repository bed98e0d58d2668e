//! Numbers as bytes, which arrays of Python are made of without a look at each number.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Rows of each entity, the times of all rows, and the numbers of each channel.
pub(crate) type PyArrays<'py> =
    (Vec<usize>, Bound<'py, PyBytes>, BTreeMap<String, Bound<'py, PyBytes>>);

/// Copies numbers of eight bytes, the lowest byte first.
///
/// # Errors
/// Returns `MemoryError` if there is no room.
pub(crate) fn numbers<'py, N: Copy>(
    py: Python<'py>,
    numbers: &[N],
    bytes_of: impl Fn(N) -> [u8; 8],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * 8, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&bytes_of(*number));
        }
        Ok(())
    })
}
