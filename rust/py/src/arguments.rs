//! Converts arguments: values of Python become values of the engine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::clock::{self, CallTime};
use fleetcast_core::model::error::Result;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::query::SeriesRequest;
use fleetcast_core::query::latest::EntityOrder;
use fleetcast_core::wire::Precision;
use fleetcast_service::serving::BatchBounds;

/// Returns the attribute `name` of an object of any class.
pub(crate) fn at<'py, T>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    object.getattr(name)?.extract().map_err(Into::into)
}

pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    let of = Duration::try_from_secs_f64(seconds);
    of.map_err(|_| PyValueError::new_err(format!("{seconds} is no number of seconds to wait")))
}

/// Duplicates `descriptor`: the copy stays open after Python closes the original.
#[expect(unsafe_code, reason = "descriptors are numbers in Python")]
pub(crate) fn own(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is borrowed for this call only, and the call fails if it is not open.
    unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()
}

pub(crate) fn key_of(bytes: &[u8]) -> PyResult<&[u8; 32]> {
    let wrong = || format!("a master key has 32 bytes, not {}", bytes.len());
    bytes.try_into().map_err(|_| PyValueError::new_err(wrong()))
}

/// Returns `now_ns` if the caller gives it, else reads the wall clock.
pub(crate) fn now(now_ns: Option<i64>) -> CallTime {
    now_ns.map_or_else(CallTime::by_wall_clock, CallTime::from)
}

/// Returns `now_ns`, or the wall clock if it is `None`, in nanoseconds since 1970.
///
/// # Errors
/// Returns [`Error::Unavailable`] if the wall clock stands before 2020.
pub(crate) fn ingest_ns(now_ns: Option<i64>) -> Result<i64> {
    now_ns.map_or_else(clock::ingest_ns, Ok)
}

/// Returns the order of a page of entities: `sort` is `id`, `time` or `field`.
pub(crate) fn entity_order<'a>(sort: &str, field: &'a str) -> PyResult<EntityOrder<'a>> {
    match sort {
        "id" => Ok(EntityOrder::Name),
        "time" => Ok(EntityOrder::Time),
        "field" => Ok(EntityOrder::Field(field)),
        _ => Err(PyValueError::new_err("sort is id, time or field")),
    }
}

/// Bounds of a batch of `records_max` records. Keywords in `given` replace the defaults.
pub(crate) fn bounds(
    records_max: usize,
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<BatchBounds> {
    let mut batch = WriteLimits { batch_records_max: records_max, ..WriteLimits::default() };
    let mut buffer_bytes_max = None;
    for (name, value) in given.into_iter().flatten() {
        let bound = match name.cast::<PyString>()?.to_str()? {
            "batch_records_max" => &mut batch.batch_records_max,
            "tags_max" => &mut batch.tags_max,
            "fields_max" => &mut batch.fields_max,
            "tenant_fields_max" => &mut batch.tenant_fields_max,
            "tenant_series_max" => &mut batch.tenant_series_max,
            "tenant_names_bytes_max" => &mut batch.tenant_names_bytes_max,
            "buffer_bytes_max" => {
                buffer_bytes_max = value.extract()?;
                continue;
            }
            other => {
                let message = format!("got an unexpected keyword argument {other:?}");
                return Err(PyTypeError::new_err(message));
            }
        };
        *bound = value.extract()?;
    }
    Ok(BatchBounds { batch, buffer_bytes_max })
}

/// The values of a tag that a caller wants.
#[derive(FromPyObject)]
pub(crate) enum TagArgument {
    One(String),
    Any(Vec<String>),
}

/// Converts the tags that rows must have. Example: `{"site": ["north", "south"]}`.
pub(crate) fn chosen_tags(
    tags: Option<BTreeMap<String, TagArgument>>,
) -> BTreeMap<String, Vec<String>> {
    let values = |values| match values {
        TagArgument::One(value) => vec![value],
        TagArgument::Any(values) => values,
    };
    tags.into_iter().flatten().map(|(key, of_key)| (key, values(of_key))).collect()
}

/// Converts the request for a series: a time range, and the interval and aggregation of its
/// windows.
pub(crate) fn series_request(
    entity_ids: Vec<String>,
    (start_ns, end_ns): (i64, Option<i64>),
    measurement: &str,
    fields: Option<Vec<String>>,
    (interval, agg): (Option<&str>, Option<&str>),
) -> PyResult<SeriesRequest> {
    let intervals = Interval::ALL.map(Interval::as_str);
    let aggregations = Aggregation::ALL.map(Aggregation::as_str);
    let interval = interval.map(|word| named("interval", word, &intervals, Interval::parse));
    let aggregation = agg.map(|word| named("agg", word, &aggregations, Aggregation::parse));
    Ok(SeriesRequest {
        entity_ids,
        start_ns,
        end_ns,
        measurement: measurement.to_owned(),
        fields: fields.unwrap_or_default(),
        interval: interval.transpose()?,
        aggregation: aggregation.transpose()?,
    })
}

/// Names of the units that times in lines may have.
pub(crate) const PRECISIONS: [&str; 4] = ["ns", "us", "ms", "s"];

/// Converts the name of the unit of times in lines. Example: `"ms"`.
pub(crate) fn precision_of(name: &str) -> PyResult<Precision> {
    named("precision", name, &PRECISIONS, Precision::parse)
}

/// Converts the name of a field's type.
pub(crate) fn field_type_of(kind: &str) -> PyResult<FieldType> {
    named("type", kind, &["float", "bool", "text"], FieldType::parse)
}

fn named<T>(
    kind: &str,
    name: &str,
    all: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> PyResult<T> {
    let unknown = || format!("no {kind} {name:?}: give one of {}", all.join(", "));
    parse(name).ok_or_else(|| PyValueError::new_err(unknown()))
}
