//! Records of accounts as Python sees them. `fleetcast_service::accounts` has the encoding and the
//! rules of each class.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use fleetcast_service::accounts::{self, Record};

use crate::errors::records_error;
use crate::records::RecordsTransaction;

/// Defines the class of a kind of records. A record is stored `by` a member of the class, or
/// `under` a key that the caller gives. The braces hold the members, with defaults for optional
/// members, and further methods.
macro_rules! record {
    (
        $name:ident $(by $own:ident)? $(under $given:ident)?,
        { $($member:ident: $kind:ty $(= $default:ident)?),* },
        { $($methods:tt)* }
    ) => {
        #[pyclass(frozen, eq, module = "fleetcast._core")]
        #[derive(Clone, PartialEq)]
        pub(crate) struct $name(Arc<accounts::$name>);

        impl From<accounts::$name> for $name {
            fn from(record: accounts::$name) -> Self {
                Self(Arc::new(record))
            }
        }

        #[pymethods]
        impl $name {
            #[classattr]
            const SPACE: &'static str = accounts::$name::SPACE;

            #[new]
            #[pyo3(signature = (*, $($member $(= $default)?),*))]
            fn new($($member: $kind),*) -> Self {
                accounts::$name { $($member),* }.into()
            }

            $(
                #[getter]
                fn $member<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    (&self.0.$member).into_bound_py_any(py)
                }
            )*

            #[pyo3(signature = (**changes))]
            fn replace<'py>(
                slf: &Bound<'py, Self>,
                changes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let members = PyDict::new(slf.py());
                $(members.set_item(stringify!($member), &slf.get().0.$member)?;)*
                if let Some(changes) = changes {
                    members.update(changes.as_mapping())?;
                }
                slf.get_type().call((), Some(&members))
            }

            fn encode(&self) -> PyResult<Vec<u8>> {
                self.0.encode().map_err(|error| records_error(&error))
            }

            #[classmethod]
            fn get(
                class: &Bound<'_, PyType>,
                view: &RecordsTransaction,
                key: &str,
            ) -> PyResult<Option<Self>> {
                let found = view.view.with(class.py(), |view| accounts::$name::get(view, key))?;
                Ok(found.map(Self::from))
            }

            #[classmethod]
            #[pyo3(signature = (view, prefix = ""))]
            fn all(
                class: &Bound<'_, PyType>,
                view: &RecordsTransaction,
                prefix: &str,
            ) -> PyResult<BTreeMap<String, Self>> {
                let found = view.view.with(class.py(), |view| accounts::$name::all(view, prefix))?;
                Ok(found.into_iter().map(|(key, record)| (key, record.into())).collect())
            }

            fn put(
                &self,
                py: Python<'_>,
                view: &RecordsTransaction,
                $($given: &str)?
            ) -> PyResult<()> {
                let (key, stored) = ($(&self.0.$own)? $($given)?, self.encode()?);
                view.change(py, |view| view.put(accounts::$name::SPACE, key.as_bytes(), &stored))
            }

            #[classmethod]
            fn delete(
                class: &Bound<'_, PyType>,
                view: &RecordsTransaction,
                key: &str,
            ) -> PyResult<()> {
                let space = accounts::$name::SPACE;
                view.change(class.py(), |view| view.delete(space, key.as_bytes()))
            }

            $($methods)*
        }
    };
}

record!(Tenant by name, {
    name: String, account_id: String, plan: String, live_ingest: bool,
    retention_seconds: Option<i64>, disabled: bool, created_at: i64
}, {
    #[getter]
    fn status(&self) -> &'static str {
        if self.0.disabled { "disabled" } else { "active" }
    }
});

record!(ApiKey by key_id, {
    key_id: String, tenant: String, name: String, scopes: Vec<String>, environment: String,
    created_at: i64, expires_at: Option<i64>, revoked_at: Option<i64>, hash: String,
    replaced_by: Option<String> = None
}, {
    fn ended(&self, now: i64) -> Option<&'static str> {
        self.0.ended(now)
    }
});

record!(OperatorToken by token_id, {
    token_id: String, name: String, created_at: i64, expires_at: i64, revoked_at: Option<i64>,
    hash: String
}, {
    fn ended(&self, now: i64) -> Option<&'static str> {
        self.0.ended(now)
    }
});

record!(ConsoleSession by session_id, {
    session_id: String, token_id: String, address: String, opened_at: i64, used_at: i64,
    expires_at: i64, hash: String
}, {
    fn ended(&self, now: i64) -> bool {
        self.0.has_ended(now)
    }
});

record!(UsageRecord under key, { requests: u64, run: String, counted: u64 }, {});

/// Tenant and key of a request.
#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Identity {
    tenant: Tenant,
    key: ApiKey,
}

impl From<&accounts::Identity> for Identity {
    fn from(found: &accounts::Identity) -> Self {
        Self { tenant: Tenant(Arc::clone(&found.tenant)), key: ApiKey(Arc::clone(&found.key)) }
    }
}
