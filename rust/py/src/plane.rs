//! `Plane` as Python sees it.

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::model::limits::{
    ANSWER_VALUES_MAX, BATCH_RECORDS_MAX, CALL_RECORDS_MAX, FIELDS_MAX, HISTORY_DAYS_MAX,
    POINTS_MAX, RAW_SPAN_SECONDS_MAX, TAGS_MAX, TENANT_FIELDS_MAX, TENANT_SERIES_MAX, WriteLimits,
};
use fleetcast_core::plane::{self, Acknowledge, Due};
use fleetcast_core::query::latest::LatestView;
use fleetcast_core::query::{self, AnswerBounds, Frame, QueryRefusal, SeriesLimits, SeriesRequest};
use fleetcast_core::wire::Format;

use crate::arrow::ArrowStream;
use crate::door::leave;
use crate::errors::{query_refused, store_error, write_error};
use crate::results::{Compacted, Stats, Upcoming, Verified, WriteResult};

#[pyclass(frozen, weakref, module = "fleetcast._core")]
pub(crate) struct Plane {
    /// `None` once closed; a call under way keeps the plane until it ends, which is soon.
    open: RwLock<Option<Arc<plane::Plane>>>,
}

impl Plane {
    fn wrap(plane: plane::Plane) -> Self {
        Self { open: RwLock::new(Some(Arc::new(plane))) }
    }

    /// Runs `work` on the open plane without the GIL.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&plane::Plane) -> Result<R> + Send,
    ) -> PyResult<R> {
        let plane = self.open.read().ok().and_then(|open| open.clone());
        let plane = plane.ok_or_else(|| store_error(&Error::Closed))?;
        leave(py, move || {
            // Moved in here: what is freed with the last use of a closed plane needs no GIL.
            let plane = plane;
            work(&plane)
        })
    }

    /// Writes one batch as of `now_ns`, else of the system clock.
    fn write(
        &self,
        py: Python<'_>,
        (format, body): (Format, &[u8]),
        limits: WriteLimits,
        buffer_bytes_max: Option<usize>,
        now_ns: Option<i64>,
    ) -> PyResult<WriteResult> {
        let acknowledge = match buffer_bytes_max {
            None => Acknowledge::Durable,
            Some(bytes_max) => Acknowledge::Buffered { bytes_max },
        };
        let outcome = self.detached(py, |plane| {
            let now_ns = clock_ns(now_ns);
            match plane.write(format, body, &limits, now_ns, acknowledge) {
                Ok(written) => WriteResult::new(written, now_ns).map(Ok),
                Err(error) => Ok(Err(error)),
            }
        })?;
        outcome.map_err(|error| write_error(py, error))
    }

    fn latest(
        &self,
        py: Python<'_>,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now_ns: Option<i64>,
    ) -> PyResult<Vec<Vec<u8>>> {
        if measurement.is_some_and(|name| !query::MEASUREMENTS.contains(&name)) {
            return Err(query_refused(py, &QueryRefusal::InvalidInput { field: "measurement" }));
        }
        self.detached(py, |plane| {
            let as_of_ns = instant(plane, as_of_ns, now_ns)?;
            plane.latest_json(as_of_ns, freshness_ns, measurement, clock_ns(now_ns))
        })
    }

    fn series(
        &self,
        py: Python<'_>,
        request: SeriesRequest,
        limits: &SeriesLimits,
        now_ns: Option<i64>,
    ) -> PyResult<Vec<Vec<u8>>> {
        let outcome = self.detached(py, |plane| {
            let clock_ns = clock_ns(now_ns);
            match request.check(limits, plane.read_instant(clock_ns)?, clock_ns) {
                Ok(query) => {
                    let answer = plane.series(query, limits.bounds(), clock_ns)?;
                    Ok(Ok(answer.to_json_chunks()))
                }
                Err(refusal) => Ok(Err(refusal)),
            }
        })?;
        outcome.map_err(|refusal| query_refused(py, &refusal))
    }
}

#[pymethods]
impl Plane {
    #[staticmethod]
    fn create(py: Python<'_>, directory: &str, master_key: &[u8]) -> PyResult<()> {
        let master_key = key(master_key)?;
        leave(py, || plane::Plane::create(Path::new(directory), master_key))
    }

    #[staticmethod]
    fn open(
        py: Python<'_>,
        directory: &str,
        master_key: &[u8],
        tenant_key: &str,
    ) -> PyResult<Self> {
        let master_key = key(master_key)?;
        leave(py, || plane::Plane::open(Path::new(directory), master_key, tenant_key))
            .map(Self::wrap)
    }

    #[staticmethod]
    fn in_memory(tenant_key: &str) -> PyResult<Self> {
        plane::Plane::in_memory(tenant_key).map(Self::wrap).map_err(|error| store_error(&error))
    }

    #[staticmethod]
    fn verify(py: Python<'_>, directory: &str, master_key: &[u8]) -> PyResult<Verified> {
        let master_key = key(master_key)?;
        leave(py, || plane::Plane::verify(Path::new(directory), master_key)).map(Verified::from)
    }

    #[staticmethod]
    fn peek(py: Python<'_>, directory: &str) -> PyResult<Stats> {
        leave(py, || plane::Plane::peek(Path::new(directory))).map(Stats::from)
    }

    #[pyo3(signature = (
        body, *, batch_records_max=BATCH_RECORDS_MAX, tags_max=TAGS_MAX, fields_max=FIELDS_MAX,
        tenant_fields_max=TENANT_FIELDS_MAX, tenant_series_max=TENANT_SERIES_MAX,
        buffer_bytes_max=None, now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn write_json(
        &self,
        py: Python<'_>,
        body: &[u8],
        batch_records_max: usize,
        tags_max: usize,
        fields_max: usize,
        tenant_fields_max: usize,
        tenant_series_max: usize,
        buffer_bytes_max: Option<usize>,
        now_ns: Option<i64>,
    ) -> PyResult<WriteResult> {
        let limits = WriteLimits {
            batch_records_max,
            tags_max,
            fields_max,
            tenant_fields_max,
            tenant_series_max,
        };
        self.write(py, (Format::Json, body), limits, buffer_bytes_max, now_ns)
    }

    #[pyo3(signature = (
        body, *, batch_records_max=CALL_RECORDS_MAX, tags_max=TAGS_MAX, fields_max=FIELDS_MAX,
        tenant_fields_max=TENANT_FIELDS_MAX, tenant_series_max=TENANT_SERIES_MAX,
        buffer_bytes_max=None, now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn write_protobuf(
        &self,
        py: Python<'_>,
        body: &[u8],
        batch_records_max: usize,
        tags_max: usize,
        fields_max: usize,
        tenant_fields_max: usize,
        tenant_series_max: usize,
        buffer_bytes_max: Option<usize>,
        now_ns: Option<i64>,
    ) -> PyResult<WriteResult> {
        let limits = WriteLimits {
            batch_records_max,
            tags_max,
            fields_max,
            tenant_fields_max,
            tenant_series_max,
        };
        self.write(py, (Format::Protobuf, body), limits, buffer_bytes_max, now_ns)
    }

    #[pyo3(signature = (*, as_of_ns=None, freshness_ns=300_000_000_000, measurement=None, now_ns=None))]
    fn latest_json<'py>(
        &self,
        py: Python<'py>,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now_ns: Option<i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let chunks = self.latest(py, as_of_ns, freshness_ns, measurement, now_ns)?;
        joined(py, &chunks)
    }

    #[pyo3(signature = (*, as_of_ns=None, freshness_ns=300_000_000_000, measurement=None, now_ns=None))]
    fn latest_json_chunks<'py>(
        &self,
        py: Python<'py>,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        now_ns: Option<i64>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let chunks = self.latest(py, as_of_ns, freshness_ns, measurement, now_ns)?;
        Ok(copied(py, chunks))
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, point_budget=POINTS_MAX, answer_values_max=ANSWER_VALUES_MAX,
        history_horizon_days=HISTORY_DAYS_MAX, raw_span_seconds=RAW_SPAN_SECONDS_MAX, now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn series_json<'py>(
        &self,
        py: Python<'py>,
        entity_ids: Vec<String>,
        start_ns: i64,
        end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        point_budget: u64,
        answer_values_max: u64,
        history_horizon_days: u32,
        raw_span_seconds: u32,
        now_ns: Option<i64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let request = request(entity_ids, start_ns, end_ns, measurement, fields, interval, agg)?;
        let limits = SeriesLimits {
            points_max: point_budget,
            values_max: answer_values_max,
            horizon_days: history_horizon_days,
            raw_span_seconds,
        };
        joined(py, &self.series(py, request, &limits, now_ns)?)
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, point_budget=POINTS_MAX, answer_values_max=ANSWER_VALUES_MAX,
        history_horizon_days=HISTORY_DAYS_MAX, raw_span_seconds=RAW_SPAN_SECONDS_MAX, now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn series_json_chunks<'py>(
        &self,
        py: Python<'py>,
        entity_ids: Vec<String>,
        start_ns: i64,
        end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        point_budget: u64,
        answer_values_max: u64,
        history_horizon_days: u32,
        raw_span_seconds: u32,
        now_ns: Option<i64>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let request = request(entity_ids, start_ns, end_ns, measurement, fields, interval, agg)?;
        let limits = SeriesLimits {
            points_max: point_budget,
            values_max: answer_values_max,
            horizon_days: history_horizon_days,
            raw_span_seconds,
        };
        Ok(copied(py, self.series(py, request, &limits, now_ns)?))
    }

    #[pyo3(signature = (
        measurement, *, entity_ids=None, fields=None, as_of_ns=None, freshness_ns=300_000_000_000,
        now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn latest_frame(
        &self,
        py: Python<'_>,
        measurement: &str,
        entity_ids: Option<Vec<String>>,
        fields: Option<Vec<String>>,
        as_of_ns: Option<i64>,
        freshness_ns: i64,
        now_ns: Option<i64>,
    ) -> PyResult<ArrowStream> {
        self.detached(py, move |plane| {
            let as_of_ns = instant(plane, as_of_ns, now_ns)?;
            let (entity_ids, fields) = (entity_ids.as_deref(), fields.as_deref());
            let frame =
                |view: LatestView<'_>| Frame::of_latest(&view, measurement, entity_ids, fields);
            plane.with_latest(as_of_ns, freshness_ns, Some(measurement), clock_ns(now_ns), frame)?
        })
        .map(ArrowStream::from)
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, now_ns=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    fn series_frame(
        &self,
        py: Python<'_>,
        entity_ids: Vec<String>,
        start_ns: i64,
        end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        now_ns: Option<i64>,
    ) -> PyResult<ArrowStream> {
        let request = request(entity_ids, start_ns, end_ns, measurement, fields, interval, agg)?;
        self.detached(py, |plane| {
            let clock_ns = clock_ns(now_ns);
            let query = request.into_query(plane.read_instant(clock_ns)?);
            Frame::of_series(&plane.series(query, AnswerBounds::NONE, clock_ns)?)
        })
        .map(ArrowStream::from)
    }

    #[pyo3(signature = (*, now_ns=None))]
    fn ingest_lead_ns(&self, py: Python<'_>, now_ns: Option<i64>) -> PyResult<i64> {
        self.detached(py, |plane| Ok(plane.ingest_lead_ns(clock_ns(now_ns))))
    }

    fn ping(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, plane::Plane::ping)
    }

    fn follow(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, plane::Plane::follow)
    }

    fn knows_any(&self, py: Python<'_>, measurements: Vec<String>) -> PyResult<bool> {
        self.detached(py, move |plane| plane.knows_any(&measurements))
    }

    #[pyo3(signature = (*, whole=false, after_seconds=3600, now_ns=None))]
    fn compact(
        &self,
        py: Python<'_>,
        whole: bool,
        after_seconds: u32,
        now_ns: Option<i64>,
    ) -> PyResult<Option<Compacted>> {
        let age_ns = i64::from(after_seconds) * 1_000_000_000;
        let due = if whole { Due::Now } else { Due::LargeOrAged { age_ns } };
        let done = self.detached(py, |plane| plane.compact(due, clock_ns(now_ns)))?;
        Ok(done.map(Compacted::from))
    }

    #[pyo3(signature = (*, after_seconds=3600, now_ns=None))]
    fn upcoming(
        &self,
        py: Python<'_>,
        after_seconds: u32,
        now_ns: Option<i64>,
    ) -> PyResult<Upcoming> {
        let age_ns = i64::from(after_seconds) * 1_000_000_000;
        self.detached(py, |plane| plane.upcoming(age_ns, clock_ns(now_ns))).map(Upcoming::from)
    }

    fn set_retention(&self, py: Python<'_>, seconds: Option<u64>) -> PyResult<()> {
        if seconds == Some(0) {
            return Err(PyValueError::new_err("a retention is at least a second"));
        }
        self.detached(py, |plane| plane.set_retention(seconds.unwrap_or(0)))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        self.detached(py, plane::Plane::stats).map(Stats::from)
    }

    fn seal<'py>(&self, py: Python<'py>, plain: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        self.detached(py, |plane| plane.seal(plain)).map(|sealed| PyBytes::new(py, &sealed))
    }

    fn unseal<'py>(&self, py: Python<'py>, sealed: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        self.detached(py, |plane| plane.unseal(sealed)).map(|plain| PyBytes::new(py, &plain))
    }

    fn name_hash<'py>(&self, py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        self.detached(py, |plane| Ok(plane.name_hash(name))).map(|hash| PyBytes::new(py, &hash))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, plane::Plane::flush)
    }

    fn buffered_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.detached(py, |plane| Ok(plane.buffered_bytes()))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let plane = self.open.write().ok().and_then(|mut open| open.take());
        leave(py, move || {
            if let Some(plane) = plane {
                plane.close();
            }
            Ok(())
        })
    }
}

/// A long answer as one object.
fn joined<'py>(py: Python<'py>, chunks: &[Vec<u8>]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, chunks.iter().map(Vec::len).sum(), |mut body| {
        for chunk in chunks {
            let (start, rest) = body.split_at_mut(chunk.len());
            start.copy_from_slice(chunk);
            body = rest;
        }
        Ok(())
    })
}

/// A long answer in pieces, each freed before the next is copied, so that the copy may have its
/// memory.
fn copied(py: Python<'_>, chunks: Vec<Vec<u8>>) -> Vec<Bound<'_, PyBytes>> {
    chunks.into_iter().map(|chunk| PyBytes::new(py, &chunk)).collect()
}

fn key(bytes: &[u8]) -> PyResult<&[u8; 32]> {
    bytes.try_into().map_err(|_| PyValueError::new_err("a master key has 32 bytes"))
}

fn request(
    entity_ids: Vec<String>,
    start_ns: i64,
    end_ns: Option<i64>,
    measurement: &str,
    fields: Option<Vec<String>>,
    interval: Option<&str>,
    agg: Option<&str>,
) -> PyResult<SeriesRequest> {
    let unknown = |what: &str, name: &str| PyValueError::new_err(format!("no {what} {name:?}"));
    Ok(SeriesRequest {
        entity_ids,
        start_ns,
        end_ns,
        measurement: measurement.to_owned(),
        fields: fields.unwrap_or_default(),
        interval: interval
            .map(|name| Interval::parse(name).ok_or_else(|| unknown("interval", name)))
            .transpose()?,
        aggregation: agg
            .map(|name| Aggregation::parse(name).ok_or_else(|| unknown("aggregation", name)))
            .transpose()?,
    })
}

/// The instant a newest-sample read is asked for, now where it is not.
fn instant(plane: &plane::Plane, as_of_ns: Option<i64>, now_ns: Option<i64>) -> Result<i64> {
    match as_of_ns {
        Some(as_of_ns) => Ok(as_of_ns),
        None => plane.read_instant(clock_ns(now_ns)),
    }
}

/// `now_ns`, else the system clock, nanoseconds since 1970.
fn clock_ns(now_ns: Option<i64>) -> i64 {
    now_ns.unwrap_or_else(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
    })
}
