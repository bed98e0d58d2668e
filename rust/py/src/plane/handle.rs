//! The open plane behind a `Plane` of Python, and the ways to run work on the plane.

use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_core::model::error::Result;
use fleetcast_core::plane::{self, Failure};
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::Format;
use fleetcast_service::Refusal;
use fleetcast_service::planes::OpenPlane;
use fleetcast_service::serving::BatchBounds;

use super::Plane;
use crate::arguments::ingest_ns;
use crate::errors::{failure, store_error};
use crate::gil::leave;
use crate::results::WriteResult;

impl From<plane::Plane> for Plane {
    fn from(plane: plane::Plane) -> Self {
        Self::from(Arc::new(OpenPlane::from(plane)))
    }
}

impl From<Arc<OpenPlane>> for Plane {
    fn from(open: Arc<OpenPlane>) -> Self {
        Self { open }
    }
}

impl Plane {
    /// Returns the plane for a call.
    ///
    /// # Errors
    /// Returns `Closed` if the handle is closed.
    pub(crate) fn opened(&self) -> PyResult<Arc<plane::Plane>> {
        self.open.for_a_call().map_err(|error| store_error(&error))
    }

    /// Returns the plane behind this handle.
    pub(crate) fn shared(&self) -> &Arc<OpenPlane> {
        &self.open
    }

    /// Runs `work` on the open plane without the GIL.
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&plane::Plane) -> Result<R> + Send,
    ) -> PyResult<R> {
        let plane = self.opened()?;
        leave(py, move || {
            // The block drops the plane here: freeing a closed plane after its last use needs no
            // GIL.
            work(Arc::as_ref(&{ plane }))
        })
    }

    /// Runs `work` like [`Self::detached`]. The contract may refuse the request.
    pub(crate) fn answered<R: Send, Q: Into<Refusal> + Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&plane::Plane) -> Result<R, Failure<Q>> + Send,
    ) -> PyResult<R> {
        self.detached(py, |plane| Ok(work(plane)))?.map_err(|error| failure(py, error))
    }

    /// Writes a batch at `now_ns`, or at the time of the wall clock.
    pub(super) fn write(
        &self,
        py: Python<'_>,
        (format, body): (Format, &[u8]),
        bounds: &BatchBounds,
        cursor: Option<([u8; 16], Vec<u8>)>,
        now_ns: Option<i64>,
    ) -> PyResult<WriteResult> {
        let when = bounds.acknowledge(cursor.map(|(key, position)| Cursor { key, position }));
        self.answered(py, |plane| {
            let now_ns = ingest_ns(now_ns)?;
            let written = plane.write(format, body, &bounds.batch, now_ns, when)?;
            Ok(WriteResult::new(written, now_ns)?)
        })
    }
}
