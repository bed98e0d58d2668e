//! `Authenticator` as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_service::accounts::{self, Identity, Rejection};

use crate::errors::{InvalidKey, not_served};
use crate::records::Records;

/// `accounts.authenticator.Identity`, in the order of its members.
type IdentityParts<'i> =
    ((&'i str, &'i str, &'i str, &'i str), &'i [String], (&'i str, bool, bool, Option<i64>, i64));

/// The members of an identity.
pub(super) fn parts<'py>(py: Python<'py>, identity: &Identity) -> PyResult<Bound<'py, PyAny>> {
    let Identity { account, tenant, key } = identity;
    let parts: IdentityParts<'_> = (
        (account, &tenant.name, &key.key_id, &key.environment),
        &key.scopes,
        (
            &tenant.plan,
            tenant.live_ingest,
            tenant.disabled,
            tenant.retention_seconds,
            tenant.created_at,
        ),
    );
    Ok(parts.into_pyobject(py)?.into_any())
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Authenticator(Arc<accounts::Authenticator>);

impl Authenticator {
    pub(crate) fn shared(&self) -> Arc<accounts::Authenticator> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Authenticator {
    #[new]
    fn new(records: &Records, pepper: &[u8], environment: &str) -> Self {
        Self(Arc::new(accounts::Authenticator::new(records.shared(), pepper, environment)))
    }

    #[pyo3(signature = (key, *, now))]
    fn identify<'py>(
        &self,
        py: Python<'py>,
        key: Option<&str>,
        now: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        match py.detach(|| self.0.identify(key, now)) {
            Ok(identity) => parts(py, &identity),
            Err(Rejection::InvalidKey) => {
                Err(InvalidKey::new_err(("auth_failed", PyDict::new(py).unbind())))
            }
            Err(rejection) => Err(not_served(py, &rejection.into())),
        }
    }
}
