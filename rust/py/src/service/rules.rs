//! The rules of a listener, from the settings.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_core::model::clock;
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::plane::Failure;
use fleetcast_core::query::SeriesLimits;
use fleetcast_promql as promql;
use fleetcast_service::admission::{ADAPTER_ROUTES, Admission, KeyPlaces, PUBLIC_ROUTES, Route};
use fleetcast_service::answers::{self, ForecastRules, OtherValues};
use fleetcast_service::clients::{ClientAddresses, ClientLimits, Networks};
use fleetcast_service::serving::{self, CommonFields, ErrorRow, ErrorRows, FaultPolicy};

use super::authenticator::Authenticator;
use super::decision::Decision;
use super::environ_request::request_of;
use crate::adapted::NameMapping;
use crate::arguments::{at, bounds};
use crate::body::AnyBody;
use crate::errors::failure;
use crate::forecasts::{ForecastFamily, ForecastQuestion, KeptForecasts};
use crate::gil::leave;
use crate::limiter::LimiterFile;
use crate::long_answer::body;
use crate::pieces::{Piece, views};
use crate::plane::Plane;
use crate::planes::OpenPlanes;
use crate::results::WriteResult;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Service(Arc<serving::Service>);

impl Service {
    pub(crate) fn shared(&self) -> Arc<serving::Service> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Service {
    /// `rules` is an `http.rules.ListenerRules`.
    #[new]
    fn new(
        authenticator: &Authenticator,
        planes: &OpenPlanes,
        rules: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let file = |name| Ok::<_, PyErr>(at::<Py<LimiterFile>>(rules, name)?.get().shared());
        let networks = |name| Ok::<_, PyErr>(Networks::new(&at::<Vec<String>>(rules, name)?));
        let limits = ClientLimits::new(networks("exempt")?, file("rates")?, file("lockouts")?);
        let mapping: Option<Py<NameMapping>> = at(rules, "mapping")?;
        let (routes, keys) = listener(mapping.is_some());
        let settings = rules.getattr("settings")?;
        let admission = Admission {
            routes,
            keys,
            addresses: ClientAddresses::new(networks("trusted_proxies")?),
            limits,
            authenticator: authenticator.shared(),
            planes: planes.shared(),
            body_bytes_max: at(rules, "body_bytes_max")?,
            backend: at(&settings.getattr("store")?, "backend")?,
        };
        let limits = settings.getattr("limits")?;
        let series = SeriesLimits {
            points_max: at(&limits, "point_budget")?,
            values_max: at(&limits, "answer_values_max")?,
            horizon_days: at(&limits, "history_horizon_days")?,
            raw_span_seconds: at(&limits, "raw_span_seconds")?,
            any_measurement: false,
        };
        let adapters = settings.getattr("adapters")?;
        let questions = promql::QuestionBounds {
            samples_max: at(&adapters, "query_samples_max")?,
            time_max: Duration::from_secs(at(&adapters, "query_seconds_max")?),
        };
        let service = Arc::new(serving::Service {
            admission,
            fields: CommonFields::new(at(&settings.getattr("http")?, "cors_origins")?),
            bounds: bounds(0, Some(&at(rules, "write_limits")?))?,
            series,
            forecasts: forecast_rules(rules, &settings)?,
            questions,
            errors: error_rows(rules)?,
            simulates: at(rules, "simulates")?,
            mapping: mapping.map(|mapping| mapping.get().shared()),
        });
        Ok(Self(service))
    }

    #[pyo3(signature = (environ, *, body_bytes = 0))]
    fn decide(
        &self,
        py: Python<'_>,
        environ: &Bound<'_, PyDict>,
        body_bytes: usize,
    ) -> PyResult<Decision> {
        let mut request = request_of(environ, body_bytes)?;
        Ok(Decision(py.detach(|| self.0.admission.decide(&mut request))))
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
        match content.map_err(|refusal| failure(py, Failure::Refused(refusal)))? {
            Cow::Borrowed(_) => Ok(body),
            Cow::Owned(content) => Ok(Bound::new(py, Piece::new(content))?.into_any()),
        }
    }

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
            let pending = self.0.append(plane, asked, content, now_ns, FaultPolicy::LeftOut)?;
            Ok(WriteResult::new(pending.wait()?, now_ns)?)
        })
    }

    #[staticmethod]
    fn latest<'py>(py: Python<'py>, plane: &Plane, query: &str) -> PyResult<Bound<'py, PyAny>> {
        body(py, plane.answered(py, |plane| answers::latest(plane, query))?)
    }

    fn series<'py>(
        &self,
        py: Python<'py>,
        plane: &Plane,
        query: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        body(py, plane.answered(py, |plane| answers::series(plane, query, &self.0.series))?)
    }

    #[pyo3(signature = (query, *, other = None))]
    fn forecast_question(
        &self,
        py: Python<'_>,
        query: &str,
        other: Option<&str>,
    ) -> PyResult<(ForecastQuestion, OtherValues)> {
        let read = self.0.forecasts.read(query, other);
        let (question, others) = read.map_err(|refusal| failure(py, Failure::Refused(refusal)))?;
        Ok((ForecastQuestion(Arc::new(question)), others))
    }

    fn ask<'py>(
        &self,
        py: Python<'py>,
        plane: &Plane,
        path: &str,
        query: &str,
        form: AnyBody<'_>,
    ) -> PyResult<ApiAnswerParts<'py>> {
        let request = promql::ApiRequest { path, query, form: form.as_slice() };
        let answer = plane.detached(py, |plane| self.0.ask(plane, request))?;
        Ok((answer.status, answer.error, views(py, vec![answer.body])?))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands an argument over as it is")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        plane: &Plane,
        message: AnyBody<'_>,
    ) -> PyResult<(&'static str, ApiAnswerParts<'py>)> {
        let message = message.as_slice();
        let answer = plane.detached(py, |plane| self.0.read_samples(plane, message))?;
        let parts = (answer.status, answer.error, views(py, vec![answer.body])?);
        Ok((answer.content_type, parts))
    }
}

/// Reads the rules of forecasts. Without a store no family is served.
fn forecast_rules(
    rules: &Bound<'_, PyAny>,
    settings: &Bound<'_, PyAny>,
) -> PyResult<ForecastRules> {
    let families: Vec<Py<ForecastFamily>> = at(rules, "families")?;
    let kept: Option<Py<KeptForecasts>> = at(rules, "kept")?;
    let forecast = settings.getattr("forecast")?;
    let fresh_seconds: i64 = at(&forecast, "fresh_seconds")?;
    Ok(ForecastRules {
        families: families.iter().map(|family| Arc::clone(&family.get().0)).collect(),
        enabled: kept.as_ref().map_or(Ok(Vec::new()), |_| at(&forecast, "families"))?,
        link_ids_max: at(&settings.getattr("limits")?, "link_ids_max")?,
        fresh_ns: fresh_seconds * SECOND_NS,
        kept: kept.and_then(|kept| kept.get().of_this_machine()),
    })
}

/// Status, error type, and pieces of the body.
type ApiAnswerParts<'py> = (u16, Option<&'static str>, Vec<Bound<'py, PyAny>>);

/// Reads the rows of `http.rules.ErrorRow`.
fn error_rows(rules: &Bound<'_, PyAny>) -> PyResult<ErrorRows> {
    type Row = (u16, String, Vec<(String, String)>, Option<u64>);
    let rows: Option<HashMap<String, Row>> = at(rules, "errors")?;
    let rows = rows.into_iter().flatten();
    let row = |(code, (status, line, fields, retry_seconds))| {
        (code, ErrorRow { status, line, fields, retry_seconds })
    };
    Ok(rows.map(row).collect())
}

fn listener(is_adapters: bool) -> (&'static [Route], KeyPlaces) {
    if is_adapters {
        (ADAPTER_ROUTES, KeyPlaces::Adapters)
    } else {
        (PUBLIC_ROUTES, KeyPlaces::Public)
    }
}

/// Returns the header fields of a listener that may hold a key.
#[pyfunction]
pub(crate) fn key_fields(is_adapters: bool) -> &'static [&'static str] {
    listener(is_adapters).1.fields()
}

/// Path, methods, if the route needs a key, scope, if it is a write, and codings of the body.
type RouteParts =
    (&'static str, Vec<&'static str>, bool, Option<&'static str>, bool, Vec<&'static str>);

/// Returns the routes of a listener.
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
