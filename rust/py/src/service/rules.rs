//! The rules of a listener, out of the settings.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use fleetcast_core::model::clock;
use fleetcast_core::plane::LatestAnswer;
use fleetcast_core::query::{SeriesJson, SeriesLimits};
use fleetcast_limiter::{Error, Rules};
use fleetcast_service::admission::{ADAPTER_ROUTES, Admission, KeyPlaces, PUBLIC_ROUTES, Route};
use fleetcast_service::answers::{ReadFailure, latest, series};
use fleetcast_service::clients::{self, ClientAddresses, ClientLimits, Networks};
use fleetcast_service::serving::{self, CommonFields, Faulty};

use super::authenticator::Authenticator;
use super::context::refused;
use super::decision::Decision;
use super::environ_request::EnvironRequest;
use crate::adapted::NameMapping;
use crate::arguments::BatchLimits;
use crate::body::{AnyBody, RequestBody};
use crate::door::leave;
use crate::errors::{failure, store_error};
use crate::long_answer::LongAnswer;
use crate::pieces::views;
use crate::plane::Plane;
use crate::planes::OpenPlanes;
use crate::results::WriteResult;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct LimiterFile(Arc<clients::LimiterFile>);

#[pymethods]
impl LimiterFile {
    #[new]
    #[pyo3(signature = (
        path, on_fault, *, requests_per_minute, lockout_failures, lockout_window_seconds,
        lockout_seconds,
    ))]
    fn new(
        path: PathBuf,
        on_fault: Py<PyAny>,
        requests_per_minute: u32,
        lockout_failures: u32,
        lockout_window_seconds: u32,
        lockout_seconds: u32,
    ) -> Self {
        let rules = Rules {
            requests_per_minute,
            lockout_failures,
            lockout_window_seconds,
            lockout_seconds,
        };
        let on_fault = move |error: &Error| {
            Python::attach(|py| {
                if let Err(error) = on_fault.call1(py, (error.to_string(),)) {
                    error.write_unraisable(py, None);
                }
            });
        };
        Self(Arc::new(clients::LimiterFile::new(path, rules, Arc::new(on_fault))))
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Service(Arc<serving::Service>);

impl Service {
    pub(crate) fn shared(&self) -> Arc<serving::Service> {
        Arc::clone(&self.0)
    }
}

/// `http.rules.ListenerRules`, by the names that it has there.
#[derive(FromPyObject)]
struct ListenerRules {
    trusted_proxies: Vec<String>,
    exempt: Vec<String>,
    rates: Py<LimiterFile>,
    lockouts: Py<LimiterFile>,
    body_bytes_max: u64,
    backend: String,
    cors_origins: Vec<String>,
    write_limits: BatchLimits,
    point_budget: u64,
    answer_values_max: u64,
    history_horizon_days: u32,
    raw_span_seconds: u32,
    simulates: bool,
    mapping: Option<Py<NameMapping>>,
}

#[pymethods]
impl Service {
    #[new]
    fn new(authenticator: &Authenticator, planes: &OpenPlanes, rules: ListenerRules) -> Self {
        let limits = ClientLimits::new(
            Networks::new(&rules.exempt),
            Arc::clone(&rules.rates.get().0),
            Arc::clone(&rules.lockouts.get().0),
        );
        let (routes, keys) = listener(rules.mapping.is_some());
        let admission = Admission {
            routes,
            keys,
            addresses: ClientAddresses::new(Networks::new(&rules.trusted_proxies)),
            limits,
            authenticator: authenticator.shared(),
            planes: planes.shared(),
            body_bytes_max: rules.body_bytes_max,
            backend: rules.backend,
        };
        let series = SeriesLimits {
            points_max: rules.point_budget,
            values_max: rules.answer_values_max,
            horizon_days: rules.history_horizon_days,
            raw_span_seconds: rules.raw_span_seconds,
            any_measurement: false,
        };
        Self(Arc::new(serving::Service {
            admission,
            fields: CommonFields::new(rules.cors_origins),
            bounds: rules.write_limits.bounds(),
            series,
            simulates: rules.simulates,
            mapping: rules.mapping.map(|mapping| mapping.get().shared()),
        }))
    }

    #[pyo3(signature = (environ, *, body_bytes = 0))]
    fn decide(
        &self,
        py: Python<'_>,
        environ: &Bound<'_, PyDict>,
        body_bytes: usize,
    ) -> PyResult<Decision> {
        let mut request = EnvironRequest::read(environ, body_bytes)?;
        Ok(Decision::new(py.detach(|| self.0.admission.decide(&mut request))))
    }

    #[pyo3(signature = (request_id, origin, allow = None))]
    fn common_fields<'s>(
        &'s self,
        request_id: &'s str,
        origin: Option<&str>,
        allow: Option<&'s str>,
    ) -> Vec<(&'static str, &'s str)> {
        self.0.fields.of(request_id, origin.map(str::as_bytes), allow)
    }

    fn content<'py>(
        &self,
        py: Python<'py>,
        body: Bound<'py, PyAny>,
        content_encoding: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let packed: AnyBody<'_> = body.extract()?;
        let (packed, coding) = (packed.as_slice(), content_encoding.map(str::as_bytes));
        let content = leave(py, || Ok(self.0.content(packed, coding)))?;
        match content.map_err(|refusal| refused(py, &refusal))? {
            Cow::Borrowed(_) => Ok(body),
            Cow::Owned(content) => Ok(Bound::new(py, RequestBody::new(content))?.into_any()),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands an argument over as it is")]
    fn write(
        &self,
        py: Python<'_>,
        plane: &Plane,
        path: &str,
        query: &str,
        content: AnyBody<'_>,
    ) -> PyResult<WriteResult> {
        let route = self.0.admission.routes.iter().find(|route| route.path == path);
        let language = route.and_then(|route| route.language);
        let language = language.ok_or_else(|| PyValueError::new_err("a path without writes"))?;
        let (asked, content) = ((language, query), content.as_slice());
        plane.answered(py, |plane| {
            let now_ns = clock::ingest_ns()?;
            let pending = self.0.append(plane, asked, content, now_ns, Faulty::LeftOut)?;
            Ok(WriteResult::new(pending.wait()?, now_ns)?)
        })
    }

    #[staticmethod]
    fn latest<'py>(py: Python<'py>, plane: &Plane, query: &str) -> PyResult<Bound<'py, PyAny>> {
        match answered(py, plane, |plane| latest(plane, query))? {
            LatestAnswer::Whole(body) => Ok(PyList::new(py, views(py, vec![body])?)?.into_any()),
            LatestAnswer::Long(pieces) => {
                Ok(Bound::new(py, LongAnswer::new(Box::new(pieces)))?.into_any())
            }
        }
    }

    fn series<'py>(
        &self,
        py: Python<'py>,
        plane: &Plane,
        query: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        match answered(py, plane, |plane| series(plane, query, &self.0.series))? {
            SeriesJson::Whole(pieces) => Ok(PyList::new(py, views(py, pieces)?)?.into_any()),
            SeriesJson::Long(pieces) => Ok(Bound::new(py, LongAnswer::new(pieces))?.into_any()),
        }
    }
}

/// The answer of a plane, without the GIL.
fn answered<R: Send>(
    py: Python<'_>,
    plane: &Plane,
    read: impl FnOnce(&fleetcast_core::plane::Plane) -> Result<R, ReadFailure> + Send,
) -> PyResult<R> {
    let plane = plane.shared().for_a_call().map_err(|error| store_error(&error))?;
    match leave(py, move || Ok(read(Arc::as_ref(&{ plane }))))? {
        Ok(answer) => Ok(answer),
        Err(ReadFailure::Parameters(refusal)) => Err(refused(py, &refusal)),
        Err(ReadFailure::Plane(error)) => Err(failure(py, error)),
    }
}

fn listener(is_adapters: bool) -> (&'static [Route], KeyPlaces) {
    if is_adapters {
        (ADAPTER_ROUTES, KeyPlaces::Adapters)
    } else {
        (PUBLIC_ROUTES, KeyPlaces::Public)
    }
}

/// The header fields of a listener that a key may stand in.
#[pyfunction]
pub(crate) fn key_fields(is_adapters: bool) -> &'static [&'static str] {
    listener(is_adapters).1.fields()
}

/// Path, methods, and scope of a route; whether it needs a key and is a write; codings of a body.
type RouteParts =
    (&'static str, Vec<&'static str>, bool, Option<&'static str>, bool, Vec<&'static str>);

/// The routes of a listener.
#[pyfunction]
pub(crate) fn routes(is_adapters: bool) -> Vec<RouteParts> {
    let (routes, _) = listener(is_adapters);
    let parts = |route: &Route| {
        let codings = route.language.map_or(Vec::new(), |language| language.codings().to_vec());
        let (methods, is_ingest) = (route.allowed(), route.is_ingest());
        (route.path, methods, route.is_authenticated, route.scope, is_ingest, codings)
    };
    routes.iter().map(parts).collect()
}
