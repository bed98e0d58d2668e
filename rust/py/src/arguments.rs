//! Arguments on their way in: Python's values to the engine's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::clock::{self, Now};
use fleetcast_core::model::error::Result;
use fleetcast_core::model::limits::{BLOCK_ROWS_MAX, WriteLimits};
use fleetcast_core::plane::{Acknowledge, Due, Extent, SavedFile};
use fleetcast_core::query::SeriesRequest;
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::Precision;
use fleetcast_service::serving::BatchBounds;

use crate::errors::store_error;

pub(crate) fn key_of(bytes: &[u8]) -> PyResult<&[u8; 32]> {
    bytes.try_into().map_err(|_| PyValueError::new_err("a master key has 32 bytes"))
}

/// Files of a backup as the engine has them.
pub(crate) fn saved_files(files: Vec<(String, u64, [u8; 32])>) -> Vec<SavedFile> {
    let of = |(name, bytes, sha256)| SavedFile { name, bytes, sha256 };
    files.into_iter().map(of).collect()
}

/// `now_ns`, for which the caller vouches, else the wall clock.
pub(crate) fn now(now_ns: Option<i64>) -> Now {
    now_ns.map_or_else(Now::by_wall_clock, Now::from)
}

/// `now_ns` for a write, else the wall clock, nanoseconds since 1970.
///
/// # Errors
/// [`Error::Unavailable`] if the wall clock stands before 2020.
pub(crate) fn ingest_ns(now_ns: Option<i64>) -> Result<i64> {
    now_ns.map_or_else(clock::ingest_ns, Ok)
}

/// `surface.stores.write_limits`: bounds on one batch, and on what waits with it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_field_names, reason = "the names of Python")]
pub(crate) struct BatchLimits {
    batch_records_max: usize,
    tags_max: usize,
    fields_max: usize,
    tenant_fields_max: usize,
    tenant_series_max: usize,
    tenant_names_bytes_max: usize,
    /// Bytes that may wait in asynchronous mode.
    buffer_bytes_max: Option<usize>,
}

impl BatchLimits {
    /// Those of a call with a batch of `records_max` unless other keywords are given.
    pub(crate) fn of_call(records_max: usize, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::given(records_max, given, |limits, name, value| {
            match name {
                "batch_records_max" => limits.batch_records_max = value.extract()?,
                "buffer_bytes_max" => limits.buffer_bytes_max = value.extract()?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// Those of a piece of a file, which a block takes however many records it has.
    pub(crate) fn of_file(given: Option<&Bound<'_, PyDict>>) -> PyResult<WriteLimits> {
        Ok(Self::given(BLOCK_ROWS_MAX, given, |_, _, _| Ok(false))?.of_batch())
    }

    fn given(
        batch_records_max: usize,
        given: Option<&Bound<'_, PyDict>>,
        set: impl Fn(&mut Self, &str, &Bound<'_, PyAny>) -> PyResult<bool>,
    ) -> PyResult<Self> {
        let WriteLimits { tags_max, fields_max, .. } = WriteLimits::default();
        let WriteLimits { tenant_fields_max, tenant_series_max, tenant_names_bytes_max, .. } =
            WriteLimits::default();
        let mut limits = Self {
            batch_records_max,
            tags_max,
            fields_max,
            tenant_fields_max,
            tenant_series_max,
            tenant_names_bytes_max,
            buffer_bytes_max: None,
        };
        for (name, value) in given.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            match name.to_str()? {
                "tags_max" => limits.tags_max = value.extract()?,
                "fields_max" => limits.fields_max = value.extract()?,
                "tenant_fields_max" => limits.tenant_fields_max = value.extract()?,
                "tenant_series_max" => limits.tenant_series_max = value.extract()?,
                "tenant_names_bytes_max" => limits.tenant_names_bytes_max = value.extract()?,
                other if set(&mut limits, other, &value)? => {}
                other => {
                    let message = format!("got an unexpected keyword argument {other:?}");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        Ok(limits)
    }

    pub(crate) const fn of_batch(&self) -> WriteLimits {
        let Self { batch_records_max, tags_max, fields_max, .. } = *self;
        let Self { tenant_fields_max, tenant_series_max, tenant_names_bytes_max, .. } = *self;
        WriteLimits {
            batch_records_max,
            tags_max,
            fields_max,
            tenant_fields_max,
            tenant_series_max,
            tenant_names_bytes_max,
        }
    }

    pub(crate) const fn bounds(&self) -> BatchBounds {
        BatchBounds { batch: self.of_batch(), buffer_bytes_max: self.buffer_bytes_max }
    }

    pub(crate) fn acknowledge(&self, cursor: Option<([u8; 16], Vec<u8>)>) -> Acknowledge {
        self.bounds().acknowledge(cursor.map(|(key, position)| Cursor { key, position }))
    }
}

pub(crate) fn age_ns(after_seconds: u32) -> i64 {
    i64::from(after_seconds) * 1_000_000_000
}

pub(crate) fn due(whole: bool, after_seconds: u32) -> Due {
    if whole { Due::Now } else { Due::LargeOrAged { age_ns: age_ns(after_seconds) } }
}

/// Seconds that rows are kept, as the engine has them: 0 for ever.
pub(crate) fn retention_seconds(seconds: Option<u64>) -> PyResult<u64> {
    match seconds {
        Some(0) => Err(PyValueError::new_err("a retention is at least a second")),
        seconds => Ok(seconds.unwrap_or(0)),
    }
}

/// The rows of a delete. An empty list would be all of them, which nobody means who gives one.
pub(crate) fn extent(
    start_ns: i64,
    end_ns: i64,
    measurements: Option<Vec<String>>,
    entities: Option<Vec<String>>,
) -> PyResult<Extent> {
    if [&measurements, &entities].into_iter().any(|names| names.as_ref().is_some_and(Vec::is_empty))
    {
        return Err(PyValueError::new_err("a list of names to delete has one name at least"));
    }
    let names = |names: Option<Vec<String>>| names.unwrap_or_default();
    let extent = Extent::new(start_ns..end_ns, names(measurements), names(entities));
    extent.map_err(|error| store_error(&error))
}

/// A series as it is asked for: between two times, in windows of an interval by an aggregation.
pub(crate) fn series_request(
    entity_ids: Vec<String>,
    (start_ns, end_ns): (i64, Option<i64>),
    measurement: &str,
    fields: Option<Vec<String>>,
    (interval, agg): (Option<&str>, Option<&str>),
) -> PyResult<SeriesRequest> {
    Ok(SeriesRequest {
        entity_ids,
        start_ns,
        end_ns,
        measurement: measurement.to_owned(),
        fields: fields.unwrap_or_default(),
        interval: named("interval", interval, Interval::parse)?,
        aggregation: named("aggregation", agg, Aggregation::parse)?,
    })
}

/// The unit of the times of lines.
pub(crate) fn precision_of(name: &str) -> PyResult<Precision> {
    Precision::parse(name).ok_or_else(|| unknown("precision", name))
}

/// The type of this name.
pub(crate) fn field_type_of(kind: &str) -> PyResult<FieldType> {
    match kind {
        "float" => Ok(FieldType::Float),
        "bool" => Ok(FieldType::Bool),
        "text" => Ok(FieldType::Text),
        _ => Err(PyValueError::new_err(format!("no type {kind:?}"))),
    }
}

fn named<T>(
    kind: &str,
    name: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> PyResult<Option<T>> {
    name.map(|name| parse(name).ok_or_else(|| unknown(kind, name))).transpose()
}

fn unknown(kind: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("no {kind} {name:?}"))
}
