//! Converts the times that callers give to nanoseconds since 1970.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDateTime, PyDelta, PyDeltaAccess, PyInt, PyString, PyTzInfo, PyTzInfoAccess,
};

use fleetcast_core::model::time::{SECOND_NS, parse_ns};
use fleetcast_docstrings::documented;

const DAY_SECONDS: i64 = 86_400;
const MICROSECOND_NS: i128 = 1_000;
/// Decimal digits of a second that a `datetime` keeps: microseconds.
const MICRO_DIGITS: usize = 6;

/// 1970-01-01 without a time zone, and in UTC.
static EPOCHS: PyOnceLock<[Py<PyDateTime>; 2]> = PyOnceLock::new();

/// Converts an argument in any form that [`time_ns`] takes to nanoseconds since 1970.
pub(crate) fn instant(time: &Bound<'_, PyAny>) -> PyResult<i64> {
    let beyond = |_| PyValueError::new_err("the time is not in the years 1678 to 2261");
    i64::try_from(time_ns(time)?).map_err(beyond)
}

/// Converts an argument like [`instant`]. It may be `None`.
pub(crate) fn optional_instant(time: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    (!time.is_none()).then(|| instant(time)).transpose()
}

#[documented]
#[pyfunction]
pub(crate) fn time_ns(time: &Bound<'_, PyAny>) -> PyResult<i128> {
    if let Ok(text) = time.cast::<PyString>() {
        return text_ns(text);
    }
    if let Ok(time) = time.cast::<PyDateTime>() {
        return datetime_ns(time);
    }
    if time.is_instance_of::<PyInt>() && !time.is_instance_of::<PyBool>() {
        return time.extract();
    }
    let kind = time.get_type().qualname()?;
    let message =
        format!("a {kind} is not a time: give a datetime, ISO 8601 text or nanoseconds since 1970");
    Err(PyTypeError::new_err(message))
}

/// Tries the grammar of the engine first. Python's grammar takes more forms, and years beyond the
/// range of the engine's nanoseconds.
fn text_ns(text: &Bound<'_, PyString>) -> PyResult<i128> {
    let py = text.py();
    let characters = text.to_str()?;
    if let Some(ns) =
        parse_ns(characters.as_bytes()).filter(|ns| !matches!(*ns, i64::MIN | i64::MAX))
    {
        return Ok(i128::from(ns));
    }
    let datetime = py.get_type::<PyDateTime>();
    let time = datetime.call_method1(intern!(py, "fromisoformat"), (text,))?;
    Ok(datetime_ns(time.cast()?)? + below_microseconds(characters))
}

fn datetime_ns(time: &Bound<'_, PyDateTime>) -> PyResult<i128> {
    let py = time.py();
    let [naive, aware] = EPOCHS.get_or_try_init(py, || {
        let epoch = |zone| PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, zone).map(Bound::unbind);
        Ok::<_, PyErr>([epoch(None)?, epoch(Some(&*PyTzInfo::utc(py)?))?])
    })?;
    let epoch = if time.get_tzinfo().is_some() { aware } else { naive };
    let since_1970 = time.sub(epoch)?.cast_into::<PyDelta>()?;
    let days = i64::from(since_1970.get_days());
    let seconds = i128::from(days * DAY_SECONDS + i64::from(since_1970.get_seconds()));
    let micros = i128::from(since_1970.get_microseconds());
    Ok(seconds * i128::from(SECOND_NS) + micros * MICROSECOND_NS)
}

/// Returns the nanoseconds in digits 7 to 9 of a fraction of a second. Example: 789 of
/// `12:00:00.123456789Z`.
fn below_microseconds(text: &str) -> i128 {
    let Some(point) = text.find(['.', ',']) else { return 0 };
    let digits = text[point + 1..].bytes().take_while(u8::is_ascii_digit);
    let finer = digits.chain(std::iter::repeat(b'0')).skip(MICRO_DIGITS).take(3);
    finer.fold(0, |ns, digit| ns * 10 + i128::from(digit - b'0'))
}
