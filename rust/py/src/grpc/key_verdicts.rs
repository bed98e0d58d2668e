//! Verdicts about keys: whoever was let in a moment ago is let in again, if nothing has changed.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Instant;

use pyo3::prelude::*;

use fleetcast_front::admission::files::PlaneFiles;
use fleetcast_front::admission::lmdb::Span;
use fleetcast_front::admission::{Deciding, Verdicts};

use crate::admissions::{Control, Files, is_key_good};
use crate::open_plane::OpenPlane;
use crate::plane::Plane;

/// Verdicts of one process.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct KeyVerdicts {
    control: Control,
    verdicts: Verdicts<(Standing, Py<KeyVerdict>)>,
}

/// State of the control store before a key was looked up.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct KeyBasis {
    control: Span,
    at: Instant,
}

struct Standing {
    control: Span,
    expires_at: Option<i64>,
}

/// Permission to write to a plane.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct KeyVerdict {
    #[pyo3(get)]
    subject: Py<PyAny>,
    pub(super) plane: Weak<OpenPlane>,
    /// `None` for a plane in a database.
    pub(super) files: Option<Arc<PlaneFiles>>,
}

#[pymethods]
impl KeyVerdicts {
    #[new]
    fn new(control_store: Control) -> Self {
        Self { verdicts: Verdicts::new(control_store.lifetime()), control: control_store }
    }

    fn basis(&self) -> Option<KeyBasis> {
        let at = Instant::now();
        self.control.span().map(|control| KeyBasis { control, at })
    }

    #[pyo3(signature = (key, basis, subject, *, control_transaction, expires_at, plane, folder, files))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a text over as it is")]
    fn remember(
        &self,
        py: Python<'_>,
        key: &str,
        basis: &KeyBasis,
        subject: Py<PyAny>,
        control_transaction: u64,
        expires_at: Option<i64>,
        plane: &Plane,
        folder: String,
        files: Option<Files>,
    ) -> PyResult<()> {
        let Some(deciding) = deciding(key) else { return Ok(()) };
        if basis.control.has(control_transaction) {
            let files = files.map(|files| Arc::new(files.of_plane(Path::new(&folder))));
            let verdict = KeyVerdict { subject, plane: plane.downgraded(), files };
            let standing = Standing { control: basis.control, expires_at };
            self.verdicts.remember(&deciding, basis.at, (standing, Py::new(py, verdict)?));
        }
        Ok(())
    }

    fn find(&self, py: Python<'_>, key: &str) -> Option<Py<KeyVerdict>> {
        let found = self.verdicts.find(&deciding(key)?, Instant::now())?;
        let (standing, verdict) = &*found;
        let stands =
            is_key_good(standing.expires_at) && self.control.span()?.continues(&standing.control);
        stands.then(|| verdict.clone_ref(py))
    }

    fn tidy(&self) -> bool {
        self.verdicts.tidy(Instant::now());
        !self.verdicts.is_empty()
    }
}

fn deciding(key: &str) -> Option<Deciding<'_>> {
    Deciding::of([Some(key.as_bytes())])
}
