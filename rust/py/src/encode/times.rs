//! Times as callers give them, as nanoseconds since 1970.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyString, PyType};

use fleetcast_core::model::time::{SECOND_NS, parse_ns};

const DAY_SECONDS: i128 = 86_400;
const MICROSECOND_NS: i128 = 1_000;
/// Digits of a fraction that a `datetime` holds.
const MICRO_DIGITS: usize = 6;

/// Parts of the module `datetime`.
struct Datetimes {
    datetime: Py<PyType>,
    /// 1970 in UTC, and without a zone.
    aware_epoch: Py<PyAny>,
    naive_epoch: Py<PyAny>,
}

static DATETIMES: PyOnceLock<Datetimes> = PyOnceLock::new();

fn datetimes(py: Python<'_>) -> PyResult<&Datetimes> {
    DATETIMES.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let datetime = module.getattr("datetime")?.cast_into::<PyType>()?;
        let naive_epoch = datetime.call1((1970, 1, 1))?;
        let utc = module.getattr("UTC")?;
        let aware_epoch = datetime.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        Ok(Datetimes {
            datetime: datetime.unbind(),
            aware_epoch: aware_epoch.unbind(),
            naive_epoch: naive_epoch.unbind(),
        })
    })
}

/// Tells whether `value` is a `datetime` and of no kind of its own.
pub(super) fn is_datetime(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.get_type().is(datetimes(value.py())?.datetime.bind(value.py())))
}

#[pyfunction]
pub(crate) fn time_ns(time: &Bound<'_, PyAny>) -> PyResult<i128> {
    if let Ok(text) = time.cast::<PyString>() {
        return text_ns(text);
    }
    if time.is_instance(datetimes(time.py())?.datetime.bind(time.py()))? {
        return datetime_ns(time);
    }
    if time.is_instance_of::<PyInt>() && !time.is_instance_of::<PyBool>() {
        return time.extract();
    }
    let kind = time.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("a {kind} is not a time")))
}

/// The engine's own grammar first; Python's takes more forms, and years that the engine has no
/// nanoseconds for.
fn text_ns(text: &Bound<'_, PyString>) -> PyResult<i128> {
    let py = text.py();
    let characters = text.to_str()?;
    if let Some(ns) =
        parse_ns(characters.as_bytes()).filter(|ns| !matches!(*ns, i64::MIN | i64::MAX))
    {
        return Ok(i128::from(ns));
    }
    let datetime = datetimes(py)?.datetime.bind(py);
    let time = datetime.call_method1(intern!(py, "fromisoformat"), (text,))?;
    Ok(datetime_ns(&time)? + below_microseconds(characters))
}

fn datetime_ns(time: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = time.py();
    let Datetimes { aware_epoch, naive_epoch, .. } = datetimes(py)?;
    let has_zone = !time.getattr(intern!(py, "tzinfo"))?.is_none();
    let since_1970 = time.sub(if has_zone { aware_epoch } else { naive_epoch })?;
    let part = |name| since_1970.getattr(name)?.extract::<i64>().map(i128::from);
    let seconds = part(intern!(py, "days"))? * DAY_SECONDS + part(intern!(py, "seconds"))?;
    let micros = part(intern!(py, "microseconds"))?;
    Ok(seconds * i128::from(SECOND_NS) + micros * MICROSECOND_NS)
}

/// Nanoseconds of the seventh to the ninth digit of a fraction of a second.
fn below_microseconds(text: &str) -> i128 {
    let Some(point) = text.find(['.', ',']) else { return 0 };
    let digits = text[point + 1..].bytes().take_while(u8::is_ascii_digit);
    let finer = digits.chain(std::iter::repeat(b'0')).skip(MICRO_DIGITS).take(3);
    finer.fold(0, |ns, digit| ns * 10 + i128::from(digit - b'0'))
}
