//! Kept forecasts as Python sees them. `fleetcast_service::forecasts` has the rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use fleetcast_service::forecasts::{
    self, EntityDigest, EntityError, ForecastInstant, StoredForecasts,
};

use crate::errors::store_error;
use crate::gil::leave;
use crate::plane::Plane;
use crate::records::{Records, RecordsTransaction};

/// Id of a run of the machine, and nanoseconds in it.
type StampParts = ([u8; 16], i64);

fn stamp((boot, elapsed_ns): StampParts) -> forecasts::RecordStamp {
    forecasts::RecordStamp { boot, elapsed_ns }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RecordStamp(forecasts::RecordStamp);

#[pymethods]
impl RecordStamp {
    #[new]
    fn new(boot: [u8; 16], elapsed_ns: i64) -> Self {
        Self(stamp((boot, elapsed_ns)))
    }

    fn stamped<'py>(&self, py: Python<'py>, content: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.stamped(content))
    }

    fn age_ns(&self, record: &[u8]) -> i64 {
        self.0.age_ns(record)
    }

    #[staticmethod]
    fn content<'py>(py: Python<'py>, record: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, forecasts::RecordStamp::content(record))
    }
}

#[pyfunction]
pub(crate) fn forecast_key<'py>(
    py: Python<'py>,
    plane: &Plane,
    account_id: &str,
    family: &str,
    entity_id: &str,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (digest, key) = plane
        .detached(py, |plane| Ok(forecasts::forecast_key(plane, account_id, family, entity_id)))?;
    Ok((PyBytes::new(py, &digest), PyBytes::new(py, &key)))
}

#[pyfunction]
pub(crate) fn assignment_id(rollout_id: &str, digest: EntityDigest) -> PyResult<String> {
    forecasts::assignment_id(rollout_id, &digest).map_err(|error| store_error(&error))
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ForecastFamily(pub(crate) Arc<forecasts::ForecastFamily>);

#[pymethods]
impl ForecastFamily {
    #[new]
    fn new(
        name: String,
        horizons_minutes: Vec<u32>,
        value_names: Vec<String>,
        window_ns: Option<i64>,
    ) -> Self {
        let family = forecasts::ForecastFamily { name, horizons_minutes, value_names, window_ns };
        Self(Arc::new(family))
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ForecastQuestion(pub(crate) Arc<forecasts::ForecastQuestion>);

#[pymethods]
impl ForecastQuestion {
    #[new]
    #[pyo3(signature = (family, entity_ids, horizon_minutes = None))]
    fn new(family: &ForecastFamily, entity_ids: Vec<String>, horizon_minutes: Option<u32>) -> Self {
        let family = Arc::clone(&family.0);
        Self(Arc::new(forecasts::ForecastQuestion { family, entity_ids, horizon_minutes }))
    }

    #[getter]
    fn family(&self) -> &str {
        &self.0.family.name
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ForecastValue(Arc<forecasts::ForecastValue>);

#[pymethods]
impl ForecastValue {
    #[new]
    #[pyo3(signature = (
        *, predicted_at_ns, issued_at_ns, quantiles, tags, model_version, feature_view_id,
        release_id, role, assignment_id, lease_id,
    ))]
    fn new(
        predicted_at_ns: i64,
        issued_at_ns: i64,
        quantiles: BTreeMap<u32, Vec<f64>>,
        tags: BTreeMap<String, String>,
        model_version: String,
        feature_view_id: String,
        release_id: String,
        role: String,
        assignment_id: String,
        lease_id: String,
    ) -> PyResult<Self> {
        let quantiles = forecasts::ForecastValue::numbers(&quantiles)
            .ok_or_else(|| PyValueError::new_err("a quantile is not a finite number"))?;
        Ok(Self(Arc::new(forecasts::ForecastValue {
            predicted_at_ns,
            issued_at_ns,
            quantiles,
            tags,
            model_version,
            feature_view_id,
            release_id,
            role,
            assignment_id,
            lease_id,
        })))
    }

    fn seal<'py>(&self, py: Python<'py>, plane: &Plane) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &plane.detached(py, |plane| self.0.seal(plane))?))
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct OpenScores(forecasts::OpenScores);

#[pymethods]
impl OpenScores {
    #[getter]
    fn issued_at_ns(&self) -> i64 {
        self.0.issued_at_ns
    }

    #[getter]
    fn horizon_minutes(&self) -> u32 {
        self.0.horizon_minutes
    }

    #[getter]
    fn model_version(&self) -> &str {
        &self.0.model_version
    }

    #[getter]
    fn role(&self) -> &str {
        &self.0.role
    }

    #[getter]
    fn quantiles(&self) -> HashMap<&str, &[f64]> {
        self.0.quantiles.iter().map(|(id, quantiles)| (&**id, &**quantiles)).collect()
    }

    #[staticmethod]
    #[pyo3(signature = (
        plane, *, issued_at_ns, horizons_minutes, model_version, role, quantiles,
    ))]
    fn seal<'py>(
        py: Python<'py>,
        plane: &Plane,
        issued_at_ns: i64,
        horizons_minutes: Vec<u32>,
        model_version: String,
        role: String,
        quantiles: HashMap<String, Vec<Vec<f64>>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        if quantiles.values().any(|horizons| horizons.len() != horizons_minutes.len()) {
            return Err(PyValueError::new_err("each entity needs quantiles at each horizon"));
        }
        let scores = |(place, horizon_minutes): (usize, &u32)| forecasts::OpenScores {
            issued_at_ns,
            horizon_minutes: *horizon_minutes,
            model_version: model_version.clone(),
            role: role.clone(),
            quantiles: quantiles.iter().map(|(id, all)| (id.clone(), all[place].clone())).collect(),
        };
        let scores = horizons_minutes.iter().enumerate().map(scores);
        let records: Vec<_> =
            plane.detached(py, |plane| scores.map(|each| each.seal(plane)).collect())?;
        Ok(records.iter().map(|record: &Vec<u8>| PyBytes::new(py, record)).collect())
    }

    #[staticmethod]
    fn unseal(py: Python<'_>, plane: &Plane, record: &[u8]) -> PyResult<Option<Self>> {
        let scores = plane.detached(py, |plane| forecasts::OpenScores::unseal(plane, record))?;
        Ok(scores.map(Self))
    }

    #[staticmethod]
    fn count(record: &[u8]) -> u32 {
        forecasts::OpenScores::count(record)
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct KeptForecasts {
    kept: Arc<forecasts::KeptForecasts>,
    /// `None` if the age of records is told by another clock than this machine's.
    boot: Option<[u8; 16]>,
}

impl KeptForecasts {
    pub(crate) fn of_this_machine(&self) -> Option<(Arc<forecasts::KeptForecasts>, [u8; 16])> {
        Some((Arc::clone(&self.kept), self.boot?))
    }
}

#[pymethods]
impl KeptForecasts {
    #[new]
    fn new(records: &Records, boot: Option<[u8; 16]>) -> Self {
        Self { kept: Arc::new(forecasts::KeptForecasts::new(records.shared())), boot }
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RecentForecasts {
    question: Arc<forecasts::ForecastQuestion>,
    recent: forecasts::RecentForecasts,
}

#[pymethods]
impl RecentForecasts {
    #[new]
    #[pyo3(signature = (records, plane, account_id, question, *, fresh_ns, now_ns, stamp))]
    fn new(
        py: Python<'_>,
        records: &RecordsTransaction,
        plane: &Plane,
        account_id: &str,
        question: &ForecastQuestion,
        fresh_ns: i64,
        now_ns: i64,
        stamp: &RecordStamp,
    ) -> PyResult<Self> {
        let question = Arc::clone(&question.0);
        let opened = plane.opened()?;
        let stored = records.view.with(py, |view| {
            StoredForecasts::read(view.snapshot(), &opened, account_id, &question)
        })?;
        let now = ForecastInstant { wall_ns: now_ns, stamp: stamp.0 };
        let recent = leave(py, || stored.recent(&opened, &question, fresh_ns, &now))?;
        Ok(Self { question, recent })
    }

    #[getter]
    fn rollout(&self) -> Option<&[u8]> {
        self.recent.rollout.as_deref()
    }

    #[getter]
    fn values(&self) -> HashMap<&str, ForecastValue> {
        let pairs = self.question.entity_ids.iter().zip(&self.recent.values);
        let found = pairs.filter_map(|(id, value)| Some((&**id, Arc::clone(value.as_ref()?))));
        found.map(|(id, value)| (id, ForecastValue(value))).collect()
    }

    #[getter]
    fn missing(&self) -> Vec<&str> {
        if self.recent.is_whole() {
            return Vec::new();
        }
        let pairs = self.question.entity_ids.iter().zip(&self.recent.values);
        pairs.filter(|(_, value)| value.is_none()).map(|(id, _)| &**id).collect()
    }

    fn answer<'py>(
        &self,
        py: Python<'py>,
        captured_at_ns: i64,
        values: HashMap<String, Py<ForecastValue>>,
        errors: HashMap<String, (String, String)>,
    ) -> Bound<'py, PyBytes> {
        let ids = &self.question.entity_ids;
        let filled = |id: &String| values.get(id).map(|value| Arc::clone(&value.get().0));
        let all = ids.iter().zip(&self.recent.values);
        let all: Vec<_> = all.map(|(id, kept)| kept.clone().or_else(|| filled(id))).collect();
        let error = |(place, id)| {
            let (code, message) = errors.get(id)?.clone();
            Some(EntityError { place, code, message })
        };
        let errors: Vec<_> = ids.iter().enumerate().filter_map(error).collect();
        let body = py
            .detach(|| forecasts::forecasts_answer(&self.question, captured_at_ns, &all, &errors));
        PyBytes::new(py, &body)
    }
}
