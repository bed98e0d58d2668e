//! `Authenticator` as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_service::accounts::{self, Identity, Rejection};
use fleetcast_service::admission::Cause;

use super::context::raised;
use crate::errors::{InvalidKey, records_error};
use crate::records::Records;

/// `accounts.authenticator.Identity`, in the order of its members.
pub(super) type IdentityParts<'i> =
    ((&'i str, &'i str, &'i str, &'i str), &'i [String], (&'i str, bool, bool, Option<i64>, i64));

/// The members of an identity.
pub(super) fn parts(identity: &Identity) -> IdentityParts<'_> {
    let Identity { account, tenant, key } = identity;
    (
        (account, &tenant.name, &key.key_id, &key.environment),
        &key.scopes,
        (
            &tenant.plan,
            tenant.live_ingest,
            tenant.disabled,
            tenant.retention_seconds,
            tenant.created_at,
        ),
    )
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
            Ok(identity) => Ok(parts(&identity).into_pyobject(py)?.into_any()),
            Err(Rejection::InvalidKey) => {
                Err(InvalidKey::new_err(("auth_failed", PyDict::new(py).unbind())))
            }
            Err(Rejection::Unavailable(error)) => Err(records_error(&error)),
            Err(rejection) => Err(raised(py, &Cause::from(rejection))),
        }
    }
}
