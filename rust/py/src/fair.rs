//! `Share`, `KeyOwners` and `FairQueue` as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyString;

use fleetcast_front::fair::{self, Lane, Turn};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Share(fair::Share);

#[pymethods]
impl Share {
    #[new]
    fn new() -> Self {
        Self(fair::Share::default())
    }

    fn take(&self, owner: &str, amount: u64, bound: u64) -> bool {
        self.0.take(owner, amount, bound)
    }

    fn give(&self, owner: &str, amount: u64) {
        self.0.give(owner, amount);
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct KeyOwners(fair::KeyOwners);

#[pymethods]
impl KeyOwners {
    #[new]
    fn new() -> Self {
        Self(fair::KeyOwners::default())
    }

    fn of<'py>(&self, key: Option<&str>, address: Bound<'py, PyString>) -> Bound<'py, PyString> {
        let account = key.and_then(|key| self.0.account_of(key.as_bytes()));
        match account {
            Some(account) => PyString::new(address.py(), &account),
            None => address,
        }
    }

    fn learn(&self, key: Option<&str>, account_id: &str) -> bool {
        key.is_some_and(|key| self.0.learn(key.as_bytes(), account_id))
    }
}

/// The owner of an item as Python has it, and the item.
type Task = (Py<PyString>, Py<PyAny>);

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct FairQueue(fair::FairQueue<(), Task>);

#[pymethods]
impl FairQueue {
    #[new]
    fn new(owner_max: usize) -> Self {
        Self(fair::FairQueue::new(owner_max))
    }

    #[getter]
    fn threads_max(&self) -> usize {
        self.0.threads_max()
    }

    fn put(&self, owner: &Bound<'_, PyString>, item: Py<PyAny>) -> PyResult<()> {
        let lane = Lane { owner: owner.to_str()?.into(), kind: () };
        self.0.put(lane, (owner.clone().unbind(), item));
        Ok(())
    }

    /// The queue is looked at with the GIL, and waited for without.
    #[pyo3(signature = (*, done=None))]
    fn get(&self, py: Python<'_>, done: Option<&str>) -> Option<Task> {
        let turn = match done {
            Some(owner) => self.0.done_and_try_get(owner),
            None => self.0.try_get(),
        };
        match turn {
            Turn::Item(_, task) => Some(task),
            Turn::End => None,
            Turn::Wait => py.detach(|| self.0.get()).map(|(_, task)| task),
        }
    }

    fn close(&self) {
        self.0.close();
    }
}
