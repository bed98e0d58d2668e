//! Master keys as Python hands them over: 32 bytes, or an object for keys that turn.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use fleetcast_core::storage::seal;
use fleetcast_docstrings::documented;

use crate::arguments::key_of;
use crate::gil::{asked, leave};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct MasterKeys(seal::MasterKeys);

#[pymethods]
impl MasterKeys {
    #[new]
    fn new(master_key: &[u8], known: Py<PyAny>) -> PyResult<Self> {
        let source = move || {
            let keys: Vec<[u8; 32]> = asked(|py| known.call0(py)?.extract(py))?;
            Some(keys.into_iter().map(seal::MasterKey::new).collect())
        };
        Ok(Self(seal::MasterKeys::following(key_of(master_key)?, Box::new(source))))
    }
}

/// A master key that stays, or keys that turn.
#[derive(FromPyObject)]
pub(crate) enum MasterKeyArgument {
    Turning(Py<MasterKeys>),
    Fixed(PyBackedBytes),
}

impl MasterKeyArgument {
    pub(crate) fn keys(self) -> PyResult<seal::MasterKeys> {
        Ok(match self {
            Self::Turning(keys) => keys.get().0.clone(),
            Self::Fixed(bytes) => key_of(&bytes)?.into(),
        })
    }
}

#[documented]
#[pyfunction]
pub(crate) fn seal_secret<'py>(
    py: Python<'py>,
    master_key: &[u8],
    place: &str,
    secret: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let (master_key, secret) = (key_of(master_key)?, key_of(secret)?);
    let sealed = leave(py, || seal::seal_secret(master_key, place, secret))?;
    Ok(PyBytes::new(py, &sealed))
}

#[documented]
#[pyfunction]
pub(crate) fn open_secret<'py>(
    py: Python<'py>,
    master_key: &[u8],
    place: &str,
    sealed: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let master_key = key_of(master_key)?;
    let secret = leave(py, || seal::open_secret(master_key, place, sealed))?;
    Ok(PyBytes::new(py, &*secret))
}
