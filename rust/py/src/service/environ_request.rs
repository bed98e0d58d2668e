//! Reads a request from an environment of WSGI (PEP 3333).

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_service::admission::{BodyState, PlainRequest};

use crate::gil::asked;
use crate::latin1::bytes_of;

/// Reads a request that no front has decided on. `body_bytes` of its body have arrived.
pub(super) fn request_of(environ: &Bound<'_, PyDict>, body_bytes: usize) -> PyResult<PlainRequest> {
    let text = |name: &str| -> PyResult<Option<String>> {
        environ.get_item(name)?.map(|value| value.extract()).transpose()
    };
    let flag = |name: &str| -> PyResult<bool> {
        environ.get_item(name)?.map_or(Ok(false), |value| value.is_truthy())
    };
    let mut request = PlainRequest {
        method: text("REQUEST_METHOD")?.unwrap_or_default(),
        path: text("RAW_PATH")?
            .map_or_else(|| text("PATH_INFO"), |path| Ok(Some(path)))?
            .unwrap_or_default(),
        peer: text("REMOTE_ADDR")?.unwrap_or_default(),
        body: BodyState::Come(body_bytes),
        is_chunked: flag("fleetcast.chunked")?,
        is_counted: flag("fleetcast.admitted")?,
        is_over_share: flag("fleetcast.over_share")?,
        ..PlainRequest::default()
    };
    if flag("fleetcast.oversized")? {
        request.body = BodyState::Oversized;
    } else if flag("fleetcast.body_due")? {
        request.body = BodyState::Due;
    }
    for (name, value) in environ {
        let (Ok(name), Ok(value)) = (name.cast::<PyString>(), value.cast::<PyString>()) else {
            continue;
        };
        let name = name.to_str()?;
        let is_bare = matches!(name, "CONTENT_TYPE" | "CONTENT_LENGTH");
        let field = if is_bare { Some(name) } else { name.strip_prefix("HTTP_") };
        if let (Some(field), Some(value)) = (field, bytes_of(value.to_str()?)) {
            request.fields.insert(field.to_owned(), value.into_owned());
        }
    }
    if let Some(claim) = environ.get_item("fleetcast.claim")?.map(Bound::unbind) {
        let claim = move |account: &str| asked(|py| claim.call1(py, (account,))?.extract(py));
        request.claim = Some(Arc::new(move |account: &str| claim(account).unwrap_or(false)));
    }
    Ok(request)
}
