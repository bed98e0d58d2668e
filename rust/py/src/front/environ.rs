//! The environment of a request, as PEP 3333 has it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use percent_encoding::percent_decode;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_front::{self as front, Asked};

use crate::body::RequestBody;
use crate::latin1::latin1;

/// Names of fields that are kept as Python has them.
const NAMES_MAX: usize = 256;

/// Variables that are the same in the environments of all requests.
pub(crate) struct Environs {
    same_for_all: Py<PyDict>,
    names: Mutex<HashMap<Box<str>, Py<PyString>>>,
}

impl Environs {
    pub(crate) fn new(py: Python<'_>, server: (&str, u16)) -> PyResult<Self> {
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
        Ok(Self { same_for_all: all.unbind(), names: Mutex::default() })
    }

    /// The environment of a request whose head is well-formed; empty for another one. The body moves
    /// into it.
    ///
    /// Host, forwarding and script headers change nothing but their own `HTTP_` variables.
    pub(crate) fn of<'py>(
        &self,
        py: Python<'py>,
        request: &mut front::Request,
    ) -> PyResult<Bound<'py, PyDict>> {
        // The beginning of a body that is due is no body yet.
        let body = if request.is_body_due() { Vec::new() } else { request.take_body() };
        let body = Bound::new(py, RequestBody::new(body))?;
        let environ = self.same_for_all.bind(py).copy()?;
        let Asked::Whole { head, framing } = request.asked() else { return Ok(environ) };
        for (name, value) in head.fields() {
            environ.set_item(self.variable(py, name), latin1(py, value))?;
        }
        let is_chunked = framing.is_chunked;
        let path = head.path();
        let raw_path = PyString::new(py, path);
        let path_info = if path.contains('%') {
            latin1(py, &Cow::from(percent_decode(path.as_bytes())))
        } else {
            raw_path.clone()
        };
        let peer = request.peer();
        environ.set_item(intern!(py, "REQUEST_METHOD"), method(py, head.method()))?;
        environ.set_item(intern!(py, "PATH_INFO"), path_info)?;
        environ.set_item(intern!(py, "RAW_PATH"), raw_path)?;
        environ.set_item(intern!(py, "QUERY_STRING"), head.query())?;
        environ.set_item(intern!(py, "SERVER_PROTOCOL"), protocol(py, head.minor_version()))?;
        environ.set_item(intern!(py, "REMOTE_ADDR"), &*peer.address)?;
        environ.set_item(intern!(py, "REMOTE_PORT"), peer.port.to_string())?;
        environ.set_item(intern!(py, "wsgi.input"), &body)?;
        environ.set_item(intern!(py, "fleetcast.body"), &body)?;
        environ.set_item(intern!(py, "fleetcast.oversized"), request.is_oversized())?;
        environ.set_item(intern!(py, "fleetcast.chunked"), is_chunked)?;
        environ.set_item(intern!(py, "fleetcast.body_due"), request.is_body_due())?;
        environ.set_item(intern!(py, "fleetcast.admitted"), request.is_admitted())?;
        environ.set_item(intern!(py, "fleetcast.over_share"), request.is_over_share())?;
        Ok(environ)
    }

    /// WSGI's name of a field.
    fn variable<'py>(&self, py: Python<'py>, name: &str) -> Bound<'py, PyString> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return known.bind(py).clone();
        }
        let prefix = if matches!(name, "CONTENT_TYPE" | "CONTENT_LENGTH") { "" } else { "HTTP_" };
        let variable = PyString::new(py, &format!("{prefix}{name}"));
        if names.len() < NAMES_MAX {
            names.insert(name.into(), variable.clone().unbind());
        }
        variable
    }
}

fn method<'py>(py: Python<'py>, method: &str) -> Bound<'py, PyString> {
    match method {
        "GET" => intern!(py, "GET").clone(),
        "POST" => intern!(py, "POST").clone(),
        other => PyString::new(py, other),
    }
}

fn protocol(py: Python<'_>, minor_version: u8) -> Bound<'_, PyString> {
    match minor_version {
        1 => intern!(py, "HTTP/1.1").clone(),
        other => PyString::new(py, &format!("HTTP/1.{other}")),
    }
}
