//! `Plane` as Python sees it. Each call converts its arguments, releases the GIL and wraps its
//! result. All calls are in a single block: without a further dependency, `PyO3` allows no more.

mod handle;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use fleetcast_arrow::RowReader;
use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::limits::{
    ANSWER_VALUES_MAX, BATCH_RECORDS_MAX, BLOCK_ROWS_MAX, CALL_RECORDS_MAX, HISTORY_DAYS_MAX,
    POINTS_MAX, RAW_SPAN_SECONDS_MAX,
};
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::plane::{self, Acknowledgement, CompactionTrigger, Extent};
use fleetcast_core::query::latest::{EntityChoice, LatestPage, LatestView};
use fleetcast_core::query::scan::ScanRequest;
use fleetcast_core::query::{AnswerBounds, Frame, SeriesArrays, SeriesLimits, SeriesQuery};
use fleetcast_core::wire::Format;
use fleetcast_docstrings::documented;
use fleetcast_service::planes::OpenPlane;

use crate::arguments::{
    TagArgument, bounds, chosen_tags, entity_order, ingest_ns, now, precision_of, series_request,
};
use crate::arrays::{PyArrays, numbers};
use crate::arrow::{ArrowStream, RowStream};
use crate::body::AnyBody;
use crate::describe::description;
use crate::encode::{instant, optional_instant};
use crate::errors::store_error;
use crate::gil::leave;
use crate::results::{Compacted, Deleted, KeptHours, Stats, Upcoming, WriteResult};
use crate::text::{ImportPosition, TextFormat, first_bytes};
use crate::write_arrow::{ArrowWrites, mapping_of, stream_of};

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Plane {
    open: Arc<OpenPlane>,
}

#[documented]
#[pymethods]
impl Plane {
    fn __repr__(&self) -> String {
        let tenant = |plane: Arc<plane::Plane>| format!("Plane('{}')", plane.tenant_key());
        self.open.for_a_call().map_or_else(|_| "Plane(closed)".to_owned(), tenant)
    }

    #[staticmethod]
    fn in_memory(tenant_key: &str) -> PyResult<Self> {
        plane::Plane::in_memory(tenant_key).map(Self::from).map_err(|error| store_error(&error))
    }

    #[pyo3(
        signature = (body, *, cursor=None, now_ns=None, **limits),
        text_signature = "($self, body, *, batch_records_max=..., tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          buffer_bytes_max=None, cursor=None, now_ns=None)",
    )]
    fn write_json(
        &self,
        py: Python<'_>,
        body: AnyBody<'_>,
        cursor: Option<([u8; 16], Vec<u8>)>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<WriteResult> {
        let limits = bounds(BATCH_RECORDS_MAX, limits)?;
        self.write(py, (Format::Json, body.as_slice()), &limits, cursor, now_ns)
    }

    #[pyo3(
        signature = (body, *, cursor=None, now_ns=None, **limits),
        text_signature = "($self, body, *, batch_records_max=..., tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          buffer_bytes_max=None, cursor=None, now_ns=None)",
    )]
    fn write_protobuf(
        &self,
        py: Python<'_>,
        body: AnyBody<'_>,
        cursor: Option<([u8; 16], Vec<u8>)>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<WriteResult> {
        let limits = bounds(CALL_RECORDS_MAX, limits)?;
        self.write(py, (Format::Protobuf, body.as_slice()), &limits, cursor, now_ns)
    }

    #[pyo3(
        signature = (body, *, precision="ns", cursor=None, now_ns=None, **limits),
        text_signature = "($self, body, *, precision='ns', batch_records_max=..., tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          buffer_bytes_max=None, cursor=None, now_ns=None)",
    )]
    fn write_lines(
        &self,
        py: Python<'_>,
        body: AnyBody<'_>,
        precision: &str,
        cursor: Option<([u8; 16], Vec<u8>)>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<WriteResult> {
        let limits = bounds(CALL_RECORDS_MAX, limits)?;
        let format = Format::Lines(precision_of(precision)?);
        self.write(py, (format, body.as_slice()), &limits, cursor, now_ns)
    }

    #[pyo3(
        signature = (body, form, *, end=None, cursor=None, now_ns=None, **limits),
        text_signature = "($self, body, form, *, end=None, tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          cursor=None, now_ns=None)",
    )]
    fn write_text(
        &self,
        py: Python<'_>,
        body: AnyBody<'_>,
        form: &TextFormat,
        end: Option<usize>,
        cursor: Option<([u8; 16], ImportPosition)>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<WriteResult> {
        let limits = bounds(BLOCK_ROWS_MAX, limits)?.batch;
        let body = first_bytes(body.as_slice(), end);
        let when = cursor.map_or(Acknowledgement::Durable, |(key, position)| position.of(key));
        self.answered(py, |plane| {
            let now_ns = ingest_ns(now_ns)?;
            let written = form.write(plane, body, &limits, now_ns, when)?;
            Ok(WriteResult::new(written, now_ns)?)
        })
    }

    #[pyo3(
        signature = (stream, **options),
        text_signature = "($self, stream, *, mapping=None, tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          cursor=None, first_row=0, now_ns=None)",
    )]
    fn write_arrow<'py>(
        this: &Bound<'py, Self>,
        stream: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        this.call_method("write_arrow_pieces", (stream,), options)?.try_iter()?.collect()
    }

    #[pyo3(
        signature = (stream, *, mapping=None, cursor=None, first_row=0, now_ns=None, **limits),
        text_signature = "($self, stream, *, mapping=None, tags_max=..., fields_max=..., \
                          tenant_fields_max=..., tenant_series_max=..., tenant_names_bytes_max=..., \
                          cursor=None, first_row=0, now_ns=None)",
    )]
    fn write_arrow_pieces(
        &self,
        py: Python<'_>,
        stream: &Bound<'_, PyAny>,
        mapping: Option<&Bound<'_, PyDict>>,
        cursor: Option<[u8; 16]>,
        first_row: usize,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ArrowWrites> {
        let limits = bounds(BLOCK_ROWS_MAX, limits)?.batch;
        let mapping = mapping.map(mapping_of).transpose()?;
        let stream = stream_of(stream)?;
        let reader = leave(py, move || RowReader::new(stream, mapping, first_row))?;
        let (plane, reader) = (self.opened()?, Mutex::new(reader));
        Ok(ArrowWrites { plane, reader, limits, cursor, now_ns })
    }

    #[pyo3(signature = (*, as_of_ns=None, freshness_ns=300_000_000_000, measurement=None, now_ns=None))]
    fn latest_json(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_instant)] as_of_ns: Option<i64>,
        freshness_ns: i64,
        measurement: Option<&str>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<Vec<u8>> {
        self.answered(py, |plane| {
            plane.answer_latest(as_of_ns, freshness_ns, measurement, now(now_ns))
        })
    }

    #[pyo3(signature = (
        *, columns=None, measurement=None, search="", entity_id=None, tag=None, after_ns=i64::MIN,
        before_ns=i64::MAX, field=None, sort="id", sort_field="", descending=false, first=0,
        entities_max=200, bytes_max=4_194_304, now_ns=None,
    ))]
    fn latest_page(
        &self,
        py: Python<'_>,
        columns: Option<Vec<Vec<String>>>,
        measurement: Option<&str>,
        search: &str,
        entity_id: Option<&str>,
        tag: Option<(String, String)>,
        after_ns: i64,
        before_ns: i64,
        field: Option<(String, f64, f64)>,
        sort: &str,
        sort_field: &str,
        descending: bool,
        first: usize,
        entities_max: usize,
        bytes_max: usize,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<Vec<u8>> {
        let choice = EntityChoice {
            measurement,
            search,
            entity_id,
            tag: tag.as_ref().map(|(key, value)| (key.as_str(), value.as_str())),
            times_ns: after_ns..before_ns,
            field: field.as_ref().map(|(name, low, high)| (name.as_str(), *low..=*high)),
            order: entity_order(sort, sort_field)?,
            descending,
        };
        let page = LatestPage { choice, first, entities_max, bytes_max };
        self.detached(py, move |plane| {
            // Shows samples of every time, including samples ahead of the clock, without a
            // look-back.
            let shown = |view: LatestView<'_>| match &columns {
                None => view.page(&page),
                Some(columns) => {
                    let named: Vec<Vec<&str>> = columns
                        .iter()
                        .map(|column| column.iter().map(String::as_str).collect())
                        .collect();
                    view.points(&page, &named)
                }
            };
            plane.with_latest(i64::MAX, i64::MAX, None, now(now_ns), shown)
        })
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, point_budget=POINTS_MAX, answer_values_max=ANSWER_VALUES_MAX,
        history_horizon_days=HISTORY_DAYS_MAX, raw_span_seconds=RAW_SPAN_SECONDS_MAX,
        any_measurement=false, now_ns=None,
    ))]
    fn series_json(
        &self,
        py: Python<'_>,
        entity_ids: Vec<String>,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = optional_instant)] end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        point_budget: u64,
        answer_values_max: u64,
        history_horizon_days: u32,
        raw_span_seconds: u32,
        any_measurement: bool,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<Vec<u8>> {
        let (times, windows) = ((start_ns, end_ns), (interval, agg));
        let request = series_request(entity_ids, times, measurement, fields, windows)?;
        let limits = SeriesLimits {
            points_max: point_budget,
            values_max: answer_values_max,
            horizon_days: history_horizon_days,
            raw_span_seconds,
            any_measurement,
        };
        self.answered(py, |plane| {
            Ok(plane.answer_series(request, &limits, now(now_ns))?.to_json_chunks().concat())
        })
    }

    #[pyo3(signature = (
        measurement, *, entity_ids=None, fields=None, as_of_ns=None, freshness_ns=300_000_000_000,
        now_ns=None,
    ))]
    fn latest_frame(
        &self,
        py: Python<'_>,
        measurement: &str,
        entity_ids: Option<Vec<String>>,
        fields: Option<Vec<String>>,
        #[pyo3(from_py_with = optional_instant)] as_of_ns: Option<i64>,
        freshness_ns: i64,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<ArrowStream> {
        self.detached(py, move |plane| {
            let now = now(now_ns);
            let as_of_ns = as_of_ns.map_or_else(|| plane.read_instant(now.ns), Ok)?;
            let (entity_ids, fields) = (entity_ids.as_deref(), fields.as_deref());
            let frame =
                |view: LatestView<'_>| Frame::of_latest(&view, measurement, entity_ids, fields);
            plane.with_latest(as_of_ns, freshness_ns, Some(measurement), now, frame)?
        })
        .map(ArrowStream::from)
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, now_ns=None,
    ))]
    fn series_frame(
        &self,
        py: Python<'_>,
        entity_ids: Vec<String>,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = optional_instant)] end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<ArrowStream> {
        let (times, windows) = ((start_ns, end_ns), (interval, agg));
        let request = series_request(entity_ids, times, measurement, fields, windows)?;
        self.detached(py, |plane| {
            let now = now(now_ns);
            let query = request.into_query(plane.read_instant(now.ns)?);
            Frame::of_series(&plane.series(query, AnswerBounds::NONE, now)?)
        })
        .map(ArrowStream::from)
    }

    #[pyo3(signature = (
        *, entity_ids, start_ns, end_ns=None, measurement="telemetry", fields=None, interval=None,
        agg=None, now_ns=None,
    ))]
    fn series_arrays<'py>(
        &self,
        py: Python<'py>,
        entity_ids: Vec<String>,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = optional_instant)] end_ns: Option<i64>,
        measurement: &str,
        fields: Option<Vec<String>>,
        interval: Option<&str>,
        agg: Option<&str>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<PyArrays<'py>> {
        let (times, windows) = ((start_ns, end_ns), (interval, agg));
        let request = series_request(entity_ids, times, measurement, fields, windows)?;
        let arrays = self.detached(py, |plane| {
            let now = now(now_ns);
            let query = request.into_query(plane.read_instant(now.ns)?);
            SeriesArrays::new(&plane.series(query, AnswerBounds::NONE, now)?)
        })?;
        let times = numbers(py, &arrays.times_ns, i64::to_le_bytes)?;
        let channel = |(name, values): (String, Vec<f64>)| {
            Ok((name, numbers(py, &values, f64::to_le_bytes)?))
        };
        let channels = arrays.channels.into_iter().map(channel).collect::<PyResult<_>>()?;
        Ok((arrays.rows, times, channels))
    }

    #[pyo3(signature = (measurement, entity_id, start_ns, end_ns, *, now_ns=None))]
    fn hours_frame(
        &self,
        py: Python<'_>,
        measurement: String,
        entity_id: String,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = instant)] end_ns: i64,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<ArrowStream> {
        let query = SeriesQuery {
            entity_ids: vec![entity_id],
            start_ns,
            end_ns,
            measurement,
            fields: Vec::new(),
            windows: Some((Interval::OneHour, Aggregation::Last)),
        };
        self.detached(py, move |plane| Ok(Frame::of_hours(&plane.hours(&query, now(now_ns))?)))
            .map(ArrowStream::from)
    }

    fn entity_ids(&self, py: Python<'_>, measurement: &str) -> PyResult<Vec<String>> {
        self.detached(py, |plane| plane.entity_ids(measurement))
    }

    #[pyo3(signature = (
        start_ns, end_ns, *, measurements=None, entities=None, fields=None, tags=None, every_row=false,
        now_ns=None,
    ))]
    fn scan(
        this: &Bound<'_, Self>,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = instant)] end_ns: i64,
        measurements: Option<Vec<String>>,
        entities: Option<Vec<String>>,
        fields: Option<Vec<String>>,
        tags: Option<BTreeMap<String, TagArgument>>,
        every_row: bool,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<RowStream> {
        let request = ScanRequest {
            start_ns,
            end_ns,
            measurements,
            entities,
            fields,
            keeps_empty_rows: every_row,
            tags: chosen_tags(tags),
        };
        // The engine closes a plane when its last handle goes. The stream's handle keeps this plane
        // open.
        let handle = Arc::new(this.clone().unbind());
        let scan = move || {
            let rows = handle.get().shared().for_a_call()?.scan(&request, now(now_ns))?;
            Ok(rows.keeping(Arc::clone(&handle)))
        };
        RowStream::new(this.py(), Box::new(scan))
    }

    fn answers_hash(&self, py: Python<'_>) -> PyResult<u64> {
        self.detached(py, plane::Plane::answers_hash)
    }

    #[pyo3(signature = (measurement=None))]
    fn fields(
        &self,
        py: Python<'_>,
        measurement: Option<&str>,
    ) -> PyResult<Vec<(String, &'static str)>> {
        let fields = self.detached(py, |plane| plane.fields(measurement))?;
        Ok(fields.into_iter().map(|(name, of)| (name, of.as_str())).collect())
    }

    #[pyo3(signature = (measurement=None, entity=None))]
    fn describe<'py>(
        &self,
        py: Python<'py>,
        measurement: Option<&str>,
        entity: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.detached(py, |plane| plane.describe(measurement, entity))?;
        description(py, &found)
    }

    #[pyo3(signature = (*, now_ns=None))]
    fn ingest_lead_ns(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<i64> {
        self.detached(py, |plane| Ok(plane.ingest_lead_ns(now(now_ns).ns)))
    }

    fn newest_ingest_ns(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.detached(py, |plane| Ok(plane.newest_ingest_ns()))
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

    #[pyo3(signature = (*, whole=false, after_seconds=3600, now_ns=None, trust_clock=None))]
    fn compact(
        &self,
        py: Python<'_>,
        whole: bool,
        after_seconds: u32,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
        trust_clock: Option<bool>,
    ) -> PyResult<Option<Compacted>> {
        let age_ns = age_ns(after_seconds);
        let due =
            if whole { CompactionTrigger::Now } else { CompactionTrigger::LargeOrAged { age_ns } };
        let mut now = now(now_ns);
        now.is_believed = trust_clock.unwrap_or(now.is_believed);
        let done = self.detached(py, |plane| plane.compact(due, now))?;
        Ok(done.map(Compacted::from))
    }

    #[pyo3(signature = (*, after_seconds=3600, now_ns=None))]
    fn upcoming(
        &self,
        py: Python<'_>,
        after_seconds: u32,
        #[pyo3(from_py_with = optional_instant)] now_ns: Option<i64>,
    ) -> PyResult<Upcoming> {
        let age_ns = age_ns(after_seconds);
        self.detached(py, |plane| plane.upcoming(age_ns, now(now_ns).ns)).map(Upcoming::from)
    }

    #[pyo3(signature = (start_ns, end_ns, *, measurements=None, entities=None, dry_run=false))]
    fn delete(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = instant)] start_ns: i64,
        #[pyo3(from_py_with = instant)] end_ns: i64,
        measurements: Option<Vec<String>>,
        entities: Option<Vec<String>>,
        dry_run: bool,
    ) -> PyResult<Option<Deleted>> {
        let deleted = self.detached(py, |plane| {
            plane.delete(&Extent::new(start_ns..end_ns, measurements, entities)?, dry_run)
        })?;
        Ok(deleted.map(Deleted::from))
    }

    fn set_retention(&self, py: Python<'_>, seconds: Option<NonZeroU64>) -> PyResult<()> {
        self.detached(py, |plane| plane.set_retention(seconds.map_or(0, NonZeroU64::get)))
    }

    fn keep_hours(&self, py: Python<'_>, seconds: Option<NonZeroU64>) -> PyResult<bool> {
        self.detached(py, |plane| plane.keep_hours(seconds.map_or(0, NonZeroU64::get)))
    }

    fn kept_hours(&self, py: Python<'_>) -> PyResult<KeptHours> {
        self.detached(py, plane::Plane::kept_hours).map(KeptHours::from)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        self.detached(py, plane::Plane::stats).map(Stats::from)
    }

    fn rekey(&self, py: Python<'_>) -> PyResult<bool> {
        self.detached(py, |plane| plane.rekey().map(|done| done.is_some()))
    }

    fn old_key_bytes(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.detached(py, plane::Plane::old_key_bytes)
    }

    fn seal(&self, py: Python<'_>, plain: &[u8]) -> PyResult<Vec<u8>> {
        self.detached(py, |plane| plane.seal(plain))
    }

    fn unseal(&self, py: Python<'_>, sealed: &[u8]) -> PyResult<Option<Vec<u8>>> {
        self.detached(py, |plane| plane.unseal(sealed))
    }

    fn name_hash(&self, py: Python<'_>, name: &[u8]) -> PyResult<Vec<u8>> {
        self.detached(py, |plane| Ok(plane.name_hash(name).to_vec()))
    }

    fn cursor(&self, py: Python<'_>, key: [u8; 16]) -> PyResult<Option<Vec<u8>>> {
        self.detached(py, |plane| plane.cursor(&key))
    }

    fn forget_cursor(&self, py: Python<'_>, key: [u8; 16]) -> PyResult<()> {
        self.detached(py, |plane| plane.forget_cursor(&key))
    }

    fn trial(&self, py: Python<'_>) -> PyResult<Self> {
        self.detached(py, plane::Plane::trial).map(Self::from)
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, plane::Plane::flush)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || {
            self.open.close();
            Ok(())
        })
    }
}

fn age_ns(after_seconds: u32) -> i64 {
    i64::from(after_seconds) * SECOND_NS
}
