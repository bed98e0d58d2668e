//! The front of one gRPC process.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use fleetcast_front::SettingsVersion;
use fleetcast_grpc::{
    self as grpc, CertificateFiles, FrontOptions, GrpcStatus, ServerParts, Statuses,
};
use fleetcast_service::renewed::RenewedValue;

use super::events::event;
use crate::arguments::{at, bounds, duration, own};
use crate::gil::{asked, leave};
use crate::planes::OpenPlanes;
use crate::service::{Authenticator, open_accounting};

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct GrpcFront(grpc::RunningFront);

#[pymethods]
impl GrpcFront {
    /// `rules` returns `grpc.front.WriteRules`; `options` is a `grpc.front.FrontOptions`.
    #[new]
    fn new(
        py: Python<'_>,
        authenticator: &Authenticator,
        planes: &OpenPlanes,
        rules: Py<PyAny>,
        accounting: &Bound<'_, PyAny>,
        options: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let renew = move || {
            asked(|py| {
                let rules = rules.bind(py).call0()?;
                let bounds = bounds(0, Some(&at(&rules, "write_limits")?))?;
                Ok(grpc::WriteRules { bounds, held_bytes_max: at(&rules, "held_bytes_max")? }
                    .into())
            })
        };
        let status = |(code, (name, retry_seconds)): (String, (String, Option<i64>))| {
            let unknown = || PyValueError::new_err(format!("no status {name}"));
            Ok((code, (GrpcStatus::of_name(&name).ok_or_else(unknown)?, retry_seconds)))
        };
        let statuses: HashMap<_, _> = at(options, "statuses")?;
        let statuses = statuses.into_iter().map(status).collect::<PyResult<_>>()?;
        let handed_on: HashMap<String, String> = at(options, "handed_on")?;
        let parts = ServerParts {
            authenticator: authenticator.shared(),
            planes: planes.shared(),
            accounting: open_accounting(accounting)?,
            in_flight: at(options, "in_flight")?,
            statuses: Statuses::new(statuses),
            rules: RenewedValue::new(Box::new(renew)),
            settings: SettingsVersion::map(&own(at(options, "settings")?)?)?,
            handed_on: handed_on.into_iter().map(|(path, route)| (path, route.into())).collect(),
            message_bytes_max: at(options, "message_bytes_max")?,
            processes: at(options, "processes")?,
        };
        let options = FrontOptions {
            listener: own(at(options, "listener")?)?,
            certificate: CertificateFiles {
                certificate: at(options, "certificate")?,
                private_key: at(options, "private_key")?,
            },
            backend: at(options, "backend")?,
            descriptors_max: at(options, "descriptors_max")?,
        };
        Ok(Self(py.detach(|| grpc::RunningFront::start(options, parts))?))
    }

    #[pyo3(signature = (seconds, /))]
    fn next_events(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Py<PyAny>>> {
        let patience = duration(seconds)?;
        let found = leave(py, || Ok(self.0.next_events(patience)))?;
        found.into_iter().map(|each| event(py, each)).collect()
    }

    #[pyo3(signature = (seconds, /))]
    fn is_alive(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let patience = duration(seconds)?;
        leave(py, || Ok(self.0.is_alive(patience)))
    }

    #[pyo3(signature = (seconds, /))]
    fn stop(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let patience = duration(seconds)?;
        leave(py, || {
            self.0.stop(patience);
            Ok(())
        })
    }
}
