//! The one file that knows both error worlds: engine errors and refusals become exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use fleetcast_core::model::aggregate::Interval;
use fleetcast_core::model::error::Error;
use fleetcast_core::model::fault::{Fault, Refusal, Step};
use fleetcast_core::plane::Failure;
use fleetcast_core::query::{MEASUREMENTS, QueryRefusal};

create_exception!(fleetcast._core, Refused, PyException);
create_exception!(fleetcast._core, InvalidKey, Refused);
create_exception!(fleetcast._core, TenantFull, Refused);
create_exception!(fleetcast._core, StoreError, PyException);
create_exception!(fleetcast._core, StoreMissing, StoreError);
create_exception!(fleetcast._core, StoreExists, StoreError);
create_exception!(fleetcast._core, StoreDamaged, StoreError);
create_exception!(fleetcast._core, StoreFull, StoreError);
create_exception!(fleetcast._core, StoreUnavailable, StoreError);
create_exception!(fleetcast._core, StoreUnreachable, StoreUnavailable);
create_exception!(fleetcast._core, RecordsUnavailable, StoreError);

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Refused", py.get_type::<Refused>())?;
    module.add("InvalidKey", py.get_type::<InvalidKey>())?;
    module.add("TenantFull", py.get_type::<TenantFull>())?;
    module.add("StoreError", py.get_type::<StoreError>())?;
    module.add("StoreMissing", py.get_type::<StoreMissing>())?;
    module.add("StoreExists", py.get_type::<StoreExists>())?;
    module.add("StoreDamaged", py.get_type::<StoreDamaged>())?;
    module.add("StoreFull", py.get_type::<StoreFull>())?;
    module.add("StoreUnavailable", py.get_type::<StoreUnavailable>())?;
    module.add("StoreUnreachable", py.get_type::<StoreUnreachable>())?;
    module.add("RecordsUnavailable", py.get_type::<RecordsUnavailable>())
}

/// The exception for a fault of the world.
pub(crate) fn store_error(error: &Error) -> PyErr {
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

/// The exception for records that cannot be used now.
pub(crate) fn records_error(error: &Error) -> PyErr {
    match error {
        Error::Invalid { message } => PyValueError::new_err(message.clone()),
        error => RecordsUnavailable::new_err(error.to_string()),
    }
}

/// A refusal that becomes an exception.
pub(crate) trait Raise {
    /// The exception, or that of Python where it could not be made.
    fn raised(self, py: Python<'_>) -> PyResult<PyErr>;
}

/// The exception for a request that came to nothing.
pub(crate) fn failure<R: Raise>(py: Python<'_>, failure: Failure<R>) -> PyErr {
    match failure {
        Failure::Failed(error) => store_error(&error),
        Failure::Refused(refusal) => refusal.raised(py).unwrap_or_else(|python_error| python_error),
    }
}

impl Raise for Refusal {
    fn raised(self, py: Python<'_>) -> PyResult<PyErr> {
        let (code, context) = (self.code(), PyDict::new(py));
        if let Some(field) = self.field() {
            context.set_item("field", field)?;
        }
        match self {
            Self::Faults(faults) | Self::Dropped(faults) => {
                let detail = PyList::empty(py);
                for fault in &faults {
                    detail.append(fault_item(py, fault)?)?;
                }
                context.set_item("detail", detail)?;
            }
            Self::TooManyRecords { received, max } => {
                context.set_item("max", max)?;
                context.set_item("received", received)?;
            }
            Self::TenantFull { bound } => {
                let error = TenantFull::new_err((code, context.unbind()));
                error.value(py).setattr("bound", bound)?;
                return Ok(error);
            }
            Self::InvalidInput { .. } | Self::TypeConflict { .. } | Self::BufferFull => {}
        }
        Ok(refused(code, context))
    }
}

impl Raise for QueryRefusal {
    fn raised(self, py: Python<'_>) -> PyResult<PyErr> {
        let context = PyDict::new(py);
        let code = match self {
            Self::InvalidInput { field } => {
                context.set_item("field", field)?;
                "invalid_input"
            }
            Self::UnknownMeasurement => {
                context.set_item("allowed", PyList::new(py, MEASUREMENTS)?)?;
                "unknown_measurement"
            }
            Self::AggRequiresInterval => "agg_requires_interval",
            Self::InvalidRange => "invalid_range",
            Self::HistoryHorizonExceeded { horizon_days } => {
                context.set_item("horizon_days", horizon_days)?;
                "history_horizon_exceeded"
            }
            Self::IntervalRequired { min_interval } => {
                context.set_item("min_interval", min_interval.map(Interval::as_str))?;
                "interval_required"
            }
            Self::IntervalTooFine { min_interval } => {
                context.set_item("min_interval", min_interval.map(Interval::as_str))?;
                "interval_too_fine"
            }
        };
        Ok(refused(code, context))
    }
}

/// One item of a `detail` list: its type, location and message.
fn fault_item<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Bound<'py, PyDict>> {
    let loc = PyList::new(py, ["body"])?;
    for step in &fault.loc {
        match step {
            Step::Index(index) => loc.append(index)?,
            Step::Key(key) => loc.append(key)?,
        }
    }
    let item = PyDict::new(py);
    item.set_item("type", fault.code.as_str())?;
    item.set_item("loc", loc)?;
    item.set_item("msg", fault.code.message())?;
    Ok(item)
}

fn refused(code: &'static str, context: Bound<'_, PyDict>) -> PyErr {
    Refused::new_err((code, context.unbind()))
}
