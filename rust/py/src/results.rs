//! What a write and the counters look like from Python.

use pyo3::prelude::*;

use fleetcast_core::plane;
use fleetcast_core::store::Counts;
use fleetcast_core::write_id;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct WriteResult {
    write_id: String,
    written: plane::Written,
}

impl WriteResult {
    pub(crate) fn new(written: plane::Written, now_ns: i64) -> fleetcast_core::error::Result<Self> {
        Ok(Self { write_id: write_id::new(now_ns)?, written })
    }
}

#[pymethods]
impl WriteResult {
    #[getter]
    fn write_id(&self) -> &str {
        &self.write_id
    }

    #[getter]
    fn accepted_count(&self) -> u32 {
        self.written.accepted_count
    }

    #[getter]
    fn rejected_indices(&self) -> Vec<u32> {
        self.written.rejected_indices.clone()
    }

    #[getter]
    fn commit_seconds(&self) -> f64 {
        self.written.commit.as_secs_f64()
    }

    #[getter]
    fn clamped_count(&self) -> u32 {
        self.written.clamped_count
    }
}

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Stats {
    rows: u64,
    values: u64,
    batches: u64,
    rejected: u64,
    series: u64,
    log_bytes: u64,
    stored_bytes: u64,
}

impl From<plane::Stats> for Stats {
    fn from(stats: plane::Stats) -> Self {
        let Counts { rows, values, rejected, batches, log_bytes } = stats.counts;
        let (series, stored_bytes) = (stats.series, stats.stored_bytes);
        Self { rows, values, batches, rejected, series, log_bytes, stored_bytes }
    }
}
