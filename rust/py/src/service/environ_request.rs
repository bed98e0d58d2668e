//! A request out of an environment of WSGI (PEP 3333).

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_front::fair::Owner;
use fleetcast_service::admission::{Asking, BodyState};

use crate::latin1::bytes_of;

/// A request that no front has decided on.
pub(super) struct EnvironRequest {
    method: String,
    path: String,
    peer: String,
    /// Fields by the names that heads have.
    fields: HashMap<String, Vec<u8>>,
    body: BodyState,
    is_chunked: bool,
    is_counted: bool,
    is_over_share: bool,
    /// Counts it for an account, under a front.
    claim: Option<Py<PyAny>>,
}

impl EnvironRequest {
    /// The request of an environment, of whose body so many bytes have come.
    pub(super) fn read(environ: &Bound<'_, PyDict>, body_bytes: usize) -> PyResult<Self> {
        let text = |name: &str| -> PyResult<Option<String>> {
            environ.get_item(name)?.map(|value| value.extract()).transpose()
        };
        let flag = |name: &str| -> PyResult<bool> {
            Ok(environ.get_item(name)?.is_some_and(|value| value.is_truthy().unwrap_or(false)))
        };
        let mut fields = HashMap::new();
        for (name, value) in environ {
            let (Ok(name), Ok(value)) = (name.cast::<PyString>(), value.cast::<PyString>()) else {
                continue;
            };
            let name = name.to_str()?;
            let is_bare = matches!(name, "CONTENT_TYPE" | "CONTENT_LENGTH");
            let field = if is_bare { Some(name) } else { name.strip_prefix("HTTP_") };
            if let (Some(field), Some(value)) = (field, bytes_of(value.to_str()?)) {
                fields.insert(field.to_owned(), value.into_owned());
            }
        }
        let path = match text("RAW_PATH")? {
            Some(path) => path,
            None => text("PATH_INFO")?.unwrap_or_default(),
        };
        let body = if flag("fleetcast.oversized")? {
            BodyState::Oversized
        } else if flag("fleetcast.body_due")? {
            BodyState::Due
        } else {
            BodyState::Come(body_bytes)
        };
        Ok(Self {
            method: text("REQUEST_METHOD")?.unwrap_or_default(),
            path,
            peer: text("REMOTE_ADDR")?.unwrap_or_default(),
            fields,
            body,
            is_chunked: flag("fleetcast.chunked")?,
            is_counted: flag("fleetcast.admitted")?,
            is_over_share: flag("fleetcast.over_share")?,
            claim: environ.get_item("fleetcast.claim")?.map(Bound::unbind),
        })
    }
}

impl Asking for EnvironRequest {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name).map(Vec::as_slice)
    }

    fn body(&self) -> BodyState {
        self.body
    }

    fn is_chunked(&self) -> bool {
        self.is_chunked
    }

    fn is_counted(&self) -> bool {
        self.is_counted
    }

    fn set_counted(&mut self) {
        self.is_counted = true;
    }

    fn claim(&mut self, account: &Owner) -> bool {
        let claimed = |claim: &Py<PyAny>| {
            Python::attach(|py| claim.call1(py, (&**account,))?.extract::<bool>(py))
        };
        !self.is_over_share
            && self.claim.as_ref().is_none_or(|claim| claimed(claim).unwrap_or(false))
    }
}
