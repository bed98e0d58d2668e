//! Records of a cluster as Python sees them.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use fleetcast_core::model::error::{Error, Result};

use super::{Cluster, backend};
use crate::door::leave;

type Item<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type SpaceItem<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Records {
    inner: backend::Records,
}

#[pymethods]
impl Records {
    #[new]
    fn new(cluster: &Cluster, name: &str) -> Self {
        Self { inner: backend::Records::new(Arc::clone(&cluster.inner), name) }
    }

    fn newer<'py>(
        &self,
        py: Python<'py>,
        version: i64,
    ) -> PyResult<Option<(i64, Vec<SpaceItem<'py>>)>> {
        let newer = leave(py, || self.inner.newer(version))?;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let item = |(space, key, value): (_, Vec<u8>, Vec<u8>)| (space, bytes(&key), bytes(&value));
        Ok(newer.map(|(version, records)| (version, records.into_iter().map(item).collect())))
    }

    #[pyo3(signature = (*, write))]
    fn begin(&self, py: Python<'_>, write: bool) -> PyResult<RecordsTransaction> {
        let transaction = leave(py, || self.inner.begin(write))?;
        let version = transaction.version();
        Ok(RecordsTransaction { version, inner: Mutex::new(Some(transaction)) })
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RecordsTransaction {
    #[pyo3(get)]
    version: i64,
    /// `None` once it ended.
    inner: Mutex<Option<backend::Transaction>>,
}

impl RecordsTransaction {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut backend::Transaction) -> Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            work(inner.as_mut().ok_or(Error::Closed)?)
        })
    }

    fn take(&self) -> Option<backend::Transaction> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl RecordsTransaction {
    fn get<'py>(
        &self,
        py: Python<'py>,
        space: &str,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, |transaction| transaction.get(space, key))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    #[pyo3(signature = (space, prefix, *, first, limit))]
    fn under<'py>(
        &self,
        py: Python<'py>,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: i64,
    ) -> PyResult<Vec<Item<'py>>> {
        let items = self.with(py, |transaction| transaction.under(space, prefix, first, limit))?;
        let item =
            |(key, value): &(Vec<u8>, Vec<u8>)| (PyBytes::new(py, key), PyBytes::new(py, value));
        Ok(items.iter().map(item).collect())
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a list over as it is")]
    fn get_all<'py>(
        &self,
        py: Python<'py>,
        space: &str,
        keys: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let keys = slices(&keys);
        let values = self.with(py, |transaction| transaction.get_all(space, &keys))?;
        Ok(values.into_iter().map(|value| Some(PyBytes::new(py, &value?))).collect())
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a list over as it is")]
    fn put_all(
        &self,
        py: Python<'_>,
        space: &str,
        records: Vec<(PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<()> {
        let keys: Vec<&[u8]> = records.iter().map(|(key, _)| &**key).collect();
        let values: Vec<&[u8]> = records.iter().map(|(_, value)| &**value).collect();
        self.with(py, |transaction| transaction.put_all(space, &keys, &values))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a list over as it is")]
    fn delete_all(&self, py: Python<'_>, space: &str, keys: Vec<PyBackedBytes>) -> PyResult<()> {
        let keys = slices(&keys);
        self.with(py, |transaction| transaction.delete_all(space, &keys))
    }

    fn count(&self, py: Python<'_>, space: &str) -> PyResult<i64> {
        self.with(py, |transaction| transaction.count(space))
    }

    fn put(&self, py: Python<'_>, space: &str, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.with(py, |transaction| transaction.put(space, key, value))
    }

    fn delete(&self, py: Python<'_>, space: &str, key: &[u8]) -> PyResult<()> {
        self.with(py, |transaction| transaction.delete(space, key))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || self.take().ok_or(Error::Closed)?.commit())
    }

    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || {
            if let Some(transaction) = self.take() {
                transaction.roll_back();
            }
            Ok(())
        })
    }
}

fn slices(keys: &[PyBackedBytes]) -> Vec<&[u8]> {
    keys.iter().map(|key| &**key).collect()
}
