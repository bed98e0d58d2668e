//! The front of one gRPC process.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use fleetcast_core::model::error::catching;
use fleetcast_front::SettingsVersion;
use fleetcast_grpc::{self as grpc, CertificateFiles, Options, Parts, Status, Statuses};
use fleetcast_service::renewed::Renewed;

use super::events::event;
use crate::arguments::BatchLimits;
use crate::errors::store_error;
use crate::front::own;
use crate::planes::OpenPlanes;
use crate::service::{Authenticator, Books, asked};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct GrpcFront(grpc::Front);

/// `grpc.front.WriteRules`.
#[derive(FromPyObject)]
struct WriteRules {
    write_limits: BatchLimits,
    held_bytes_max: u64,
}

/// `grpc.front.FrontOptions`.
#[derive(FromPyObject)]
struct FrontOptions {
    listener: RawFd,
    settings: RawFd,
    certificate: PathBuf,
    private_key: PathBuf,
    backend: PathBuf,
    descriptors_max: usize,
    message_bytes_max: usize,
    in_flight: usize,
    statuses: HashMap<String, (String, Option<i64>)>,
    handed_on: HashMap<String, String>,
}

#[pymethods]
impl GrpcFront {
    #[new]
    fn new(
        py: Python<'_>,
        authenticator: &Authenticator,
        planes: &OpenPlanes,
        rules: Py<PyAny>,
        books: Books,
        options: FrontOptions,
    ) -> PyResult<Self> {
        let renew = move || {
            let WriteRules { write_limits, held_bytes_max } =
                asked(|py| rules.call0(py)?.extract(py))?;
            Some(grpc::Rules { bounds: write_limits.bounds(), held_bytes_max }.into())
        };
        let status = |(code, (name, retry_seconds)): (String, (String, Option<i64>))| {
            let unknown = || PyValueError::new_err(format!("no status {name}"));
            Ok((code, (Status::of_name(&name).ok_or_else(unknown)?, retry_seconds)))
        };
        let statuses = options.statuses.into_iter().map(status).collect::<PyResult<_>>()?;
        let handed_on = options.handed_on.into_iter();
        let parts = Parts {
            authenticator: authenticator.shared(),
            planes: planes.shared(),
            books: books.open()?,
            in_flight: options.in_flight,
            statuses: Statuses::new(statuses),
            rules: Renewed::new(Box::new(renew)),
            settings: SettingsVersion::map(&own(options.settings)?)?,
            handed_on: handed_on.map(|(path, route)| (path, route.into())).collect(),
            message_bytes_max: options.message_bytes_max,
        };
        let options = Options {
            listener: own(options.listener)?,
            certificate: CertificateFiles {
                certificate: options.certificate,
                private_key: options.private_key,
            },
            backend: options.backend,
            descriptors_max: options.descriptors_max,
        };
        Ok(Self(py.detach(|| grpc::Front::start(options, parts))?))
    }

    #[pyo3(signature = (seconds, /))]
    fn next_events(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Py<PyAny>>> {
        let patience = Duration::from_secs_f64(seconds);
        let found = py.detach(|| catching(|| Ok(self.0.next_events(patience))));
        let found = found.map_err(|error| store_error(&error))?;
        found.into_iter().map(|each| event(py, each)).collect()
    }

    #[pyo3(signature = (seconds, /))]
    fn is_alive(&self, py: Python<'_>, seconds: f64) -> bool {
        py.detach(|| self.0.is_alive(Duration::from_secs_f64(seconds)))
    }

    #[pyo3(signature = (seconds, /))]
    fn stop(&self, py: Python<'_>, seconds: f64) {
        py.detach(|| self.0.stop(Duration::from_secs_f64(seconds)));
    }
}
