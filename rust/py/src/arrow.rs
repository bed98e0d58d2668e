//! Hands columns to Python through the Arrow `PyCapsule` interface.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use fleetcast_arrow::{ArrowArrayStream, OwnedSchema};
use fleetcast_core::model::error::Result;
use fleetcast_core::plane;
use fleetcast_core::query::Frame;
use fleetcast_core::query::scan::{ScanBatch, ScanSchema, json_lines};
use fleetcast_docstrings::documented;

use crate::gil::{TakeCell, leave};
use crate::html;
use crate::pieces::view;

/// The schema that a consumer prefers. The interface lets a producer ignore the preference.
type RequestedSchema<'w, 'py> = Option<&'w Bound<'py, PyAny>>;

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ArrowStream(Arc<Frame>);

impl From<Frame> for ArrowStream {
    fn from(frame: Frame) -> Self {
        Self(Arc::new(frame))
    }
}

#[documented]
#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: RequestedSchema<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_capsule(py, requested_schema, Arc::clone(&self.0))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &*self.0)
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.0.columns.iter().map(|(name, _)| &**name).collect();
        format!("ArrowStream({} rows: {})", self.0.row_count, names.join(", "))
    }

    fn _repr_html_(&self) -> String {
        html::table(&self.0)
    }
}

/// Makes the rows of a scan, anew with each call.
type Scan = dyn Fn() -> Result<plane::RowStream> + Send + Sync;

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowStream {
    scan: Box<Scan>,
    schema: Arc<ScanSchema>,
    /// The rows that no caller has taken yet. `None` once all were taken.
    rest: TakeCell<plane::RowStream>,
}

impl RowStream {
    /// Begins a scan.
    ///
    /// # Errors
    /// Returns the errors of `scan`.
    pub(crate) fn new(py: Python<'_>, scan: Box<Scan>) -> PyResult<Self> {
        let rows = leave(py, &scan)?;
        Ok(Self { scan, schema: Arc::clone(rows.schema()), rest: TakeCell::new(rows) })
    }

    /// Takes the rows that are left, or scans again if none are.
    fn all_left(&self) -> Result<plane::RowStream> {
        let rows = self.rest.take().map_or_else(&self.scan, Ok)?;
        rows.schema().check_table()?;
        Ok(rows)
    }
}

#[documented]
#[pymethods]
impl RowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: RequestedSchema<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = leave(py, || self.all_left())?;
        stream_capsule(py, requested_schema, rows)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.check_table(py)?;
        schema_capsule(py, &*self.schema)
    }

    #[pyo3(signature = (rows_max=None))]
    fn messages(&self, py: Python<'_>, rows_max: Option<usize>) -> PyResult<RowMessages> {
        let rows = leave(py, || self.all_left())?;
        let messages = fleetcast_arrow::RowMessages::new(rows, rows_max.unwrap_or(usize::MAX));
        Ok(RowMessages(Mutex::new(messages)))
    }

    fn check_table(&self, py: Python<'_>) -> PyResult<()> {
        leave(py, || self.schema.check_table())
    }

    fn __iter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let stream = this.get();
        leave(this.py(), || {
            let mut rest = stream.rest.lock();
            if rest.is_none() {
                *rest = Some((stream.scan)()?);
            }
            Ok(())
        })?;
        Ok(this)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RowBatch>> {
        leave(py, || {
            let mut rest = self.rest.lock();
            let Some(rows) = &mut *rest else { return Ok(None) };
            let Some(batch) = rows.next_batch()? else {
                *rest = None;
                return Ok(None);
            };
            let schema = Arc::clone(rows.schema());
            Ok(Some(RowBatch { schema, batch, given_count: Mutex::default() }))
        })
    }

    fn __repr__(&self) -> String {
        let fields: Vec<&str> = self.schema.columns.iter().map(|(name, _)| &**name).collect();
        format!("RowStream(time, measurement, tags, {})", fields.join(", "))
    }
}

/// The rows of a scan as bytes for a network.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowMessages(Mutex<fleetcast_arrow::RowMessages>);

#[pymethods]
impl RowMessages {
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = || self.0.lock().unwrap_or_else(PoisonError::into_inner).next_piece();
        leave(py, next)?.map(|piece| view(py, piece)).transpose()
    }
}

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct RowBatch {
    schema: Arc<ScanSchema>,
    batch: ScanBatch,
    /// Number of rows that `json_lines` has returned.
    given_count: Mutex<usize>,
}

#[documented]
#[pymethods]
impl RowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: RequestedSchema<'_, 'py>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = leave(py, || {
            self.schema.check_table()?;
            Ok((Arc::clone(&self.schema), self.batch.clone()))
        })?;
        stream_capsule(py, requested_schema, rows)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        leave(py, || self.schema.check_table())?;
        schema_capsule(py, &*self.schema)
    }

    fn __len__(&self) -> usize {
        self.batch.row_count - *self.given_count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn json_lines(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        leave(py, || {
            let mut given_count = self.given_count.lock().unwrap_or_else(PoisonError::into_inner);
            let (lines, next) = json_lines(&self.batch, &self.schema, *given_count);
            *given_count = next;
            Ok(lines)
        })
    }

    fn __repr__(&self) -> String {
        let measurement = &self.schema.measurements[self.batch.measurement as usize];
        format!("RowBatch({} rows of {measurement})", self.batch.row_count)
    }
}

fn stream_capsule<'py>(
    py: Python<'py>,
    _wish: RequestedSchema<'_, 'py>,
    stream: impl Into<ArrowArrayStream>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, stream.into(), c"arrow_array_stream")
}

fn schema_capsule(
    py: Python<'_>,
    schema: impl Into<OwnedSchema>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, schema.into(), c"arrow_schema")
}
