//! Small records as Python sees them: a store, and a transaction for a `with` block.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::storage::records::{
    Item, LmdbRecords, RecordStore, RecordTransaction, SealedRecords, only_reads,
};
use fleetcast_service::accounts::{Record, Tenant};

#[cfg(feature = "cluster")]
use crate::cluster::Cluster;
use crate::errors::records_error;
use crate::master_keys::MasterKeyArgument;

type ItemOf<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Records in the first page that an iterator reads, and in each page after it.
const PAGES: [usize; 2] = [32, 1_024];

/// Runs `work` without the GIL.
pub(crate) fn leave<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    py.detach(|| catching(work)).map_err(|error| records_error(&error))
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Records(Arc<SealedRecords>);

/// Spaces whose changes count, and the file that keeps the count.
type CountedParts = (Vec<String>, PathBuf);

/// Seals `records` with the key of the store `name`.
fn sealed(
    records: Arc<dyn RecordStore>,
    name: &str,
    spaces: &[String],
    master_key: MasterKeyArgument,
    counted: Option<CountedParts>,
) -> PyResult<SealedRecords> {
    let store = SealedRecords::new(records, master_key.keys()?, name, spaces);
    Ok(match counted {
        Some((spaces, file)) => store.counting(&spaces, &file),
        None => store,
    })
}

impl Records {
    /// Returns the store, for reads without the interpreter.
    pub(crate) fn shared(&self) -> Arc<SealedRecords> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Records {
    #[staticmethod]
    #[pyo3(signature = (folder, name, spaces, master_key, *, counted = None))]
    fn in_folder(
        folder: PathBuf,
        name: &str,
        spaces: Vec<String>,
        master_key: MasterKeyArgument,
        counted: Option<CountedParts>,
    ) -> PyResult<Self> {
        let records = LmdbRecords::new(&folder, SealedRecords::spaces(&spaces), name.as_bytes());
        Ok(Self(Arc::new(sealed(Arc::new(records), name, &spaces, master_key, counted)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (folder, name, spaces, master_key, *, counted = None))]
    fn create(
        py: Python<'_>,
        folder: PathBuf,
        name: &str,
        spaces: Vec<String>,
        master_key: MasterKeyArgument,
        counted: Option<CountedParts>,
    ) -> PyResult<()> {
        let records = LmdbRecords::new(&folder, SealedRecords::spaces(&spaces), name.as_bytes());
        let records = Arc::new(records);
        let sealed = sealed(Arc::clone(&records) as _, name, &spaces, master_key, counted)?;
        leave(py, || {
            records.create(sealed.beginning()?)?;
            // Notes the count after the store is made: if a store exists, `create` fails and the
            // file stays unchanged.
            let noted = sealed.note();
            sealed.close();
            noted
        })
    }

    #[cfg(feature = "cluster")]
    #[staticmethod]
    fn in_cluster(
        cluster: &Cluster,
        name: &str,
        spaces: Vec<String>,
        master_key: MasterKeyArgument,
    ) -> PyResult<Self> {
        Ok(Self(Arc::new(sealed(cluster.records(name), name, &spaces, master_key, None)?)))
    }

    #[cfg(feature = "cluster")]
    #[staticmethod]
    #[pyo3(signature = (cluster, name, spaces, master_key, *, follow, counted = None))]
    fn replica(
        cluster: &Cluster,
        name: &str,
        spaces: Vec<String>,
        master_key: MasterKeyArgument,
        follow: bool,
        counted: Option<CountedParts>,
    ) -> PyResult<Self> {
        let records = cluster.replica(name, follow);
        Ok(Self(Arc::new(sealed(records, name, &spaces, master_key, counted)?)))
    }

    fn is_of_master_key(&self, py: Python<'_>) -> PyResult<bool> {
        leave(py, || self.0.is_of_master_key())
    }

    fn secret<'py>(&self, py: Python<'py>, label: &str) -> PyResult<Bound<'py, PyBytes>> {
        let secret = leave(py, || self.0.secret(label))?;
        Ok(PyBytes::new(py, &*secret))
    }

    fn keep_secret(&self, py: Python<'_>, label: &str, secret: [u8; 32]) -> PyResult<()> {
        leave(py, || self.0.keep_secret(label, &secret))
    }

    fn turn(&self, py: Python<'_>, secrets: Vec<String>) -> PyResult<bool> {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        leave(py, || self.0.turn(&secrets))
    }

    fn is_sealed(&self, py: Python<'_>) -> PyResult<bool> {
        leave(py, || self.0.is_sealed())
    }

    fn unsealed_accounts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let account = |(_, value): Item| Ok(Tenant::decode(&value)?.account_id);
        leave(py, || self.0.unsealed(Tenant::SPACE)?.into_iter().map(account).collect())
    }

    fn take_over(&self, py: Python<'_>, facts: Vec<PyBackedBytes>) -> PyResult<bool> {
        let facts: Vec<&[u8]> = facts.iter().map(|fact| &**fact).collect();
        leave(py, || self.0.take_over(&facts))
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || self.0.check())
    }

    #[getter]
    fn place(&self) -> String {
        self.0.place()
    }

    #[pyo3(signature = (*, write))]
    fn begin(&self, py: Python<'_>, write: bool) -> PyResult<RecordsTransaction> {
        let view = RecordTransaction::new(leave(py, || self.0.begin(write))?);
        let version = view.version();
        Ok(RecordsTransaction {
            version,
            write,
            view: Arc::new(SharedTransaction(Mutex::new(Some(view)))),
        })
    }

    fn renew(&self, py: Python<'_>) -> PyResult<bool> {
        leave(py, || self.0.renew())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// `None` after the end of the transaction.
pub(crate) struct SharedTransaction(Mutex<Option<RecordTransaction>>);

impl SharedTransaction {
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut RecordTransaction) -> Result<R> + Send,
    ) -> PyResult<R> {
        leave(py, || {
            let mut view = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            work(view.as_mut().ok_or(Error::Closed)?)
        })
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RecordsTransaction {
    #[pyo3(get)]
    version: u64,
    write: bool,
    pub(crate) view: Arc<SharedTransaction>,
}

impl RecordsTransaction {
    pub(crate) fn change(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut RecordTransaction) + Send,
    ) -> PyResult<()> {
        self.view.with(py, |view| {
            if !self.write {
                return Err(only_reads());
            }
            work(view);
            Ok(())
        })
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
        let value = self.view.with(py, |view| view.get(space, key))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    fn load(&self, py: Python<'_>, space: &str, keys: Vec<PyBackedBytes>) -> PyResult<()> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        self.view.with(py, |view| view.load(space, &keys))
    }

    fn put(&self, py: Python<'_>, space: &str, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.change(py, |view| view.put(space, key, value))
    }

    fn delete(&self, py: Python<'_>, space: &str, key: &[u8]) -> PyResult<()> {
        self.change(py, |view| view.delete(space, key))
    }

    #[pyo3(signature = (space, prefix, first = None))]
    fn under(&self, space: String, prefix: &[u8], first: Option<&[u8]>) -> RecordsIterator {
        let next = Some(first.unwrap_or_default().to_vec());
        let ahead = PageBuffer { page: VecDeque::new(), next, limit: PAGES[0] };
        let (view, prefix) = (Arc::clone(&self.view), prefix.to_vec());
        RecordsIterator { view, space, prefix, ahead: Mutex::new(ahead) }
    }

    fn count(&self, py: Python<'_>, space: &str) -> PyResult<u64> {
        self.view.with(py, |view| view.count(space))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let commits = self.write && kind.is_none();
        leave(py, || {
            let view = self.view.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            view.filter(|_| commits).map_or(Ok(()), RecordTransaction::commit)
        })
    }
}

/// Records that are already read, and the key at which the next page begins.
struct PageBuffer {
    page: VecDeque<Item>,
    next: Option<Vec<u8>>,
    limit: usize,
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RecordsIterator {
    view: Arc<SharedTransaction>,
    space: String,
    prefix: Vec<u8>,
    ahead: Mutex<PageBuffer>,
}

#[pymethods]
impl RecordsIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<ItemOf<'py>>> {
        let item = self.view.with(py, |view| {
            let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
            while ahead.page.is_empty() {
                let Some(first) = ahead.next.take() else { return Ok(None) };
                let found = view.under(&self.space, &self.prefix, &first, ahead.limit)?;
                (ahead.page, ahead.next, ahead.limit) = (found.0.into(), found.1, PAGES[1]);
            }
            Ok(ahead.page.pop_front())
        })?;
        Ok(item.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}
