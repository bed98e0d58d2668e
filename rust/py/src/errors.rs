//! The one file that knows both error worlds: engine errors and refusals become exceptions.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{IntoPyObjectExt, create_exception};

use fleetcast_core::model::error::Error;
use fleetcast_core::model::fault::LocationStep;
use fleetcast_core::plane::Failure;
use fleetcast_docstrings::docstring;
use fleetcast_service::admission::Cause;
use fleetcast_service::answers::WriteOutcome;
use fleetcast_service::{ContextValue, DetailFault, Refusal};

create_exception!(fleetcast._core, Refused, PyException, docstring!(Refused));
create_exception!(fleetcast._core, InvalidKey, Refused, docstring!(InvalidKey));
create_exception!(fleetcast._core, TenantFull, Refused, docstring!(TenantFull));
create_exception!(fleetcast._core, StoreError, PyException, docstring!(StoreError));
create_exception!(fleetcast._core, StoreMissing, StoreError, docstring!(StoreMissing));
create_exception!(fleetcast._core, StoreExists, StoreError, docstring!(StoreExists));
create_exception!(fleetcast._core, StoreDamaged, StoreError, docstring!(StoreDamaged));
create_exception!(fleetcast._core, StoreFull, StoreError, docstring!(StoreFull));
create_exception!(fleetcast._core, StoreUnavailable, StoreError, docstring!(StoreUnavailable));
create_exception!(
    fleetcast._core,
    StoreUnreachable,
    StoreUnavailable,
    docstring!(StoreUnreachable)
);
create_exception!(fleetcast._core, RecordsUnavailable, StoreError, docstring!(RecordsUnavailable));

/// Makes the exception for an error of the engine. It says what a write that failed so left behind.
pub(crate) fn store_error(error: &Error) -> PyErr {
    let made = exception_of(error);
    let word = WriteOutcome::of_error(error).word();
    // Without the word, a write counts as one that may be stored.
    Python::attach(|py| drop(made.value(py).setattr("write_outcome", word)));
    made
}

fn exception_of(error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Missing(_) => StoreMissing::new_err(message),
        Error::Exists(_) => StoreExists::new_err(message),
        Error::Corrupt { .. } | Error::Foreign { .. } => StoreDamaged::new_err(message),
        Error::DiskFull => StoreFull::new_err(message),
        Error::Invalid { .. } => PyValueError::new_err(message),
        Error::Internal { .. } => StoreError::new_err(message),
        Error::Unavailable { .. } | Error::Unknown { .. } => StoreUnreachable::new_err(message),
        Error::Io { .. }
        | Error::Database { .. }
        | Error::TooLarge { .. }
        | Error::Overtaken
        | Error::Poisoned
        | Error::Stale
        | Error::Forked
        | Error::Closed
        | Error::Lost { .. } => StoreUnavailable::new_err(message),
    }
}

/// Makes the exception for records that cannot be used now.
pub(crate) fn records_error(error: &Error) -> PyErr {
    match error {
        Error::Invalid { message } => PyValueError::new_err(message.clone()),
        error => RecordsUnavailable::new_err(error.to_string()),
    }
}

/// Makes the exception for a request that failed or was refused.
pub(crate) fn failure<R: Into<Refusal>>(py: Python<'_>, failure: Failure<R>) -> PyErr {
    match failure {
        Failure::Failed(error) => store_error(&error),
        Failure::Refused(refusal) => refused(py, &refusal.into()),
    }
}

/// Makes the exception for a request that is not served.
pub(crate) fn not_served(py: Python<'_>, cause: &Cause) -> PyErr {
    match cause {
        Cause::Refused(refusal) => refused(py, refusal),
        Cause::AccountsUnavailable(error) => records_error(error),
        Cause::StoreFailed(error) => store_error(error),
    }
}

/// Makes the exception for a refusal. Returns the exception of Python if that fails.
fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let made = || {
        let context = PyDict::new(py);
        for (name, value) in &refusal.context {
            context.set_item(name, said(py, value)?)?;
        }
        let arguments = (refusal.code, context.unbind());
        let Some(bound) = refusal.bound else { return Ok(Refused::new_err(arguments)) };
        let error = TenantFull::new_err(arguments);
        error.value(py).setattr("bound", bound)?;
        Ok(error)
    };
    made().unwrap_or_else(|error: PyErr| error)
}

fn said<'py>(py: Python<'py>, value: &ContextValue) -> PyResult<Bound<'py, PyAny>> {
    match value {
        ContextValue::Null => py.None().into_bound_py_any(py),
        ContextValue::Text(text) => text.into_bound_py_any(py),
        ContextValue::Words(words) => words.into_bound_py_any(py),
        ContextValue::Whole(number) => number.into_bound_py_any(py),
        ContextValue::Faults(faults) => {
            let items = faults.iter().map(DetailItem::from).collect::<Vec<_>>();
            items.into_bound_py_any(py)
        }
    }
}

/// An item of a `detail` list.
#[derive(IntoPyObject)]
struct DetailItem<'f> {
    r#type: &'static str,
    loc: Vec<DetailPlace<'f>>,
    msg: &'f str,
}

#[derive(IntoPyObject)]
enum DetailPlace<'f> {
    Index(usize),
    Key(&'f str),
}

impl<'f> From<&'f DetailFault> for DetailItem<'f> {
    fn from(fault: &'f DetailFault) -> Self {
        let place = |step: &'f LocationStep| match step {
            LocationStep::Index(index) => DetailPlace::Index(*index),
            LocationStep::Key(key) => DetailPlace::Key(key),
        };
        let loc = fault.place.iter().map(place).collect();
        Self { r#type: fault.kind, loc, msg: &fault.message }
    }
}
