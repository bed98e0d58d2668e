//! `Share` and `KeyOwners` as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyString;

use fleetcast_front::fair;

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
