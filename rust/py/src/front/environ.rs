//! The environment of a request (PEP 3333).

use std::borrow::Cow;

use percent_encoding::percent_decode;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_front::{self as front, ParsedRequest};

use crate::latin1::latin1;
use crate::pieces::Piece;

/// Returns the variables that the environments of all requests share.
pub(super) fn same_for_all(py: Python<'_>, server: (&str, u16)) -> PyResult<Py<PyDict>> {
    let all = PyDict::new(py);
    all.set_item("SCRIPT_NAME", "")?;
    all.set_item("SERVER_NAME", server.0)?;
    all.set_item("SERVER_PORT", server.1.to_string())?;
    all.set_item("wsgi.version", (1, 0))?;
    all.set_item("wsgi.url_scheme", "http")?;
    all.set_item("wsgi.input_terminated", true)?;
    all.set_item("wsgi.multithread", true)?;
    all.set_item("wsgi.multiprocess", true)?;
    all.set_item("wsgi.run_once", false)?;
    all.set_item("wsgi.errors", py.import("sys")?.getattr("stderr")?)?;
    Ok(all.unbind())
}

/// Adds the variables of a request if its head is well-formed, and moves the body into them.
///
/// Host, forwarding and script headers change only their own `HTTP_` variables.
pub(super) fn add_request(
    environ: &Bound<'_, PyDict>,
    request: &mut front::Request,
) -> PyResult<()> {
    let py = environ.py();
    // While the body is still due, its first bytes are not yet a body.
    let body = if request.is_body_due() { Vec::new() } else { request.take_body() };
    let body = Bound::new(py, Piece::new(body))?;
    let ParsedRequest::Whole { head, framing } = request.asked() else { return Ok(()) };
    for (name, value) in head.fields() {
        let is_bare = matches!(name, "CONTENT_TYPE" | "CONTENT_LENGTH");
        let prefix = if is_bare { "" } else { "HTTP_" };
        environ.set_item(format!("{prefix}{name}"), latin1(py, value))?;
    }
    let path = head.path();
    let path_info = Cow::from(percent_decode(path.as_bytes()));
    let peer = request.peer();
    environ.set_item(intern!(py, "REQUEST_METHOD"), head.method())?;
    environ.set_item(intern!(py, "PATH_INFO"), latin1(py, &path_info))?;
    environ.set_item(intern!(py, "RAW_PATH"), path)?;
    environ.set_item(intern!(py, "QUERY_STRING"), head.query())?;
    let protocol = format!("HTTP/1.{}", head.minor_version());
    environ.set_item(intern!(py, "SERVER_PROTOCOL"), protocol)?;
    environ.set_item(intern!(py, "REMOTE_ADDR"), &*peer.address)?;
    environ.set_item(intern!(py, "REMOTE_PORT"), peer.port.to_string())?;
    environ.set_item(intern!(py, "wsgi.input"), &body)?;
    environ.set_item(intern!(py, "fleetcast.body"), &body)?;
    environ.set_item(intern!(py, "fleetcast.oversized"), request.is_oversized())?;
    environ.set_item(intern!(py, "fleetcast.chunked"), framing.is_chunked)?;
    environ.set_item(intern!(py, "fleetcast.body_due"), request.is_body_due())?;
    environ.set_item(intern!(py, "fleetcast.admitted"), request.is_admitted())?;
    environ.set_item(intern!(py, "fleetcast.over_share"), request.is_over_share())
}
