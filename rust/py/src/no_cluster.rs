//! The class `Cluster` in a build without the feature `cluster`: its constructor fails.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Cluster;

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let message = "this build of fleetcast has no PostgreSQL backend: it was made without the feature `cluster`";
        Err(PyValueError::new_err(message))
    }
}
