//! Writes of other protocols, whose names are mapped.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use fleetcast_core::model::limits::CALL_RECORDS_MAX;
use fleetcast_core::plane::AdaptedBody;
use fleetcast_core::wire::{Mapping, Protocol, Rule};
use fleetcast_service::serving::lines_protocol;

use crate::arguments::{bounds, ingest_ns};
use crate::body::AnyBody;
use crate::plane::Plane;
use crate::results::WriteResult;

/// Measurement, prefix of fields and tag of the entity.
type RuleParts = (Option<String>, String, Option<String>);

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct NameMapping {
    mapping: Arc<Mapping>,
}

impl NameMapping {
    pub(crate) fn shared(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }
}

#[pymethods]
impl NameMapping {
    #[new]
    #[pyo3(signature = (rules, others))]
    fn new(rules: Vec<(String, RuleParts)>, others: RuleParts) -> Self {
        let rules = rules.into_iter().map(|(source, parts)| (source, rule_of(parts)));
        Self { mapping: Arc::new(Mapping::new(rules, rule_of(others))) }
    }

    #[pyo3(signature = (plane, protocol, body, *, is_partial=true, now_ns=None, **limits))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one request")]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands an argument over as it is")]
    fn write(
        &self,
        py: Python<'_>,
        plane: &Plane,
        protocol: &str,
        body: AnyBody<'_>,
        is_partial: bool,
        now_ns: Option<i64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<WriteResult> {
        let limits = bounds(CALL_RECORDS_MAX, limits)?;
        let (protocol, mapping) = (protocol_of(protocol)?, &*self.mapping);
        let body = AdaptedBody { protocol, mapping, is_partial, bytes: body.as_slice() };
        plane.answered(py, |plane| {
            let now_ns = ingest_ns(now_ns)?;
            let when = limits.acknowledge(None);
            let written = plane.append_adapted(body, &limits.batch, now_ns, when)?.wait()?;
            Ok(WriteResult::new(written, now_ns)?)
        })
    }
}

/// The protocol of this name; that of lines is `lines`, a version of `InfluxDB` and a precision.
fn protocol_of(name: &str) -> PyResult<Protocol> {
    let protocol = match name {
        "remote write" => Some(Protocol::RemoteWrite),
        "otlp" => Some(Protocol::Otlp),
        _ => name.strip_prefix("lines ").and_then(|lines| {
            let (version, precision) = lines.split_once(' ')?;
            lines_protocol(version.parse().ok()?, precision)
        }),
    };
    protocol.ok_or_else(|| PyValueError::new_err(format!("no protocol {name:?}")))
}

/// The content of a block of snappy; `None` where it is longer than `bytes_max`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands an argument over as it is")]
pub(crate) fn unpack_snappy<'py>(
    py: Python<'py>,
    body: AnyBody<'py>,
    bytes_max: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let malformed = |error: snap::Error| PyValueError::new_err(error.to_string());
    let packed = body.as_slice();
    let length = snap::raw::decompress_len(packed).map_err(malformed)?;
    if length > bytes_max {
        return Ok(None);
    }
    let unpacked = PyBytes::new_with(py, length, |content| {
        let unpacked = py.detach(|| snap::raw::Decoder::new().decompress(packed, content));
        match unpacked.map_err(malformed)? {
            bytes if bytes == length => Ok(()),
            _ => Err(PyValueError::new_err("snappy: the content ends early")),
        }
    })?;
    Ok(Some(unpacked))
}

fn rule_of((measurement, prefix, entity): RuleParts) -> Rule {
    Rule { measurement, prefix, entity }
}
