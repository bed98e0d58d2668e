//! Refusals and faults on their way out.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use fleetcast_service::admission::Cause;
use fleetcast_service::{ParameterFault, Refusal, Value};

use crate::errors::{Refused, records_error, store_error};

/// The exception for a cause.
pub(super) fn raised(py: Python<'_>, cause: &Cause) -> PyErr {
    match cause {
        Cause::Refused(refusal) => refused(py, refusal),
        Cause::AccountsUnavailable(error) => records_error(error),
        Cause::StoreFailed(error) => store_error(error),
    }
}

/// The exception for a refusal.
pub(super) fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
    match context(py, &refusal.context) {
        Ok(context) => Refused::new_err((refusal.code, context.unbind())),
        Err(error) => error,
    }
}

fn context<'py>(py: Python<'py>, values: &[(&'static str, Value)]) -> PyResult<Bound<'py, PyDict>> {
    let context = PyDict::new(py);
    for (name, value) in values {
        match value {
            Value::Text(text) => context.set_item(name, text)?,
            Value::Whole(number) => context.set_item(name, number)?,
            Value::Faults(faults) => {
                let items = faults.iter().map(|fault| parameter_fault(py, fault));
                let items = items.collect::<PyResult<Vec<_>>>()?;
                context.set_item(name, items)?;
            }
            Value::Fault(kind, place, message) => {
                context.set_item(name, [fault(py, kind, PyList::new(py, *place)?, message)?])?;
            }
        }
    }
    Ok(context)
}

fn parameter_fault<'py>(py: Python<'py>, found: &ParameterFault) -> PyResult<Bound<'py, PyDict>> {
    let place = PyList::new(py, ["query", found.name])?;
    if let Some(index) = found.index {
        place.append(index)?;
    }
    fault(py, found.kind, place, &found.message)
}

/// An item of a `detail` list.
fn fault<'py>(
    py: Python<'py>,
    kind: &str,
    place: Bound<'py, PyList>,
    message: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let item = PyDict::new(py);
    item.set_item("type", kind)?;
    item.set_item("loc", place)?;
    item.set_item("msg", message)?;
    Ok(item)
}
