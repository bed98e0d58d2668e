//! Results on their way out: the engine's values as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use fleetcast_core::model::error::Result;
use fleetcast_core::model::fault::{Fault, Step};
use fleetcast_core::plane;
use fleetcast_core::storage::store::Counts;
use fleetcast_core::storage::write_id;
use fleetcast_service::answers::write_answer;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct WriteResult {
    write_id: String,
    written: plane::Written,
    /// Index of its first row in all that is written.
    first_row: usize,
}

impl WriteResult {
    pub(crate) const fn written(&self) -> &plane::Written {
        &self.written
    }

    pub(crate) fn new(written: plane::Written, now_ns: i64) -> Result<Self> {
        Self::of_piece(written, 0, now_ns)
    }

    pub(crate) fn of_piece(written: plane::Written, first_row: usize, now_ns: i64) -> Result<Self> {
        Ok(Self { write_id: write_id::new(now_ns)?, written, first_row })
    }
}

/// Number of its line or value, code, place in it, and sentence, of a record that was left out.
type Dropped = (usize, &'static str, String, &'static str);

/// Records that were left out, by their first faults.
fn dropped(faults: &[Fault]) -> Vec<Dropped> {
    faults.iter().map(dropped_of).collect()
}

fn dropped_of(fault: &Fault) -> Dropped {
    let mut number = 0;
    let mut path = Vec::new();
    for step in &fault.loc {
        match step {
            Step::Index(index) => number = *index,
            Step::Key(key) => path.push(key.as_str()),
        }
    }
    (number, fault.code.as_str(), path.join("."), fault.code.message())
}

#[pymethods]
impl WriteResult {
    fn answer<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let (accepted, rejected) = (self.written.accepted_count, &self.written.rejected_indices);
        PyBytes::new(py, &write_answer(&self.write_id, accepted, rejected, self.first_row))
    }

    #[getter]
    fn write_id(&self) -> &str {
        &self.write_id
    }

    #[getter]
    fn accepted_count(&self) -> u32 {
        self.written.accepted_count
    }

    #[getter]
    fn rejected_indices(&self) -> Vec<usize> {
        let rejected = self.written.rejected_indices.iter();
        rejected.map(|index| self.first_row + *index as usize).collect()
    }

    #[getter]
    fn dropped(&self) -> Vec<Dropped> {
        dropped(&self.written.dropped)
    }

    #[getter]
    fn line_count(&self) -> usize {
        self.written.line_count
    }

    #[getter]
    fn commit_seconds(&self) -> f64 {
        self.written.commit.as_secs_f64()
    }

    #[getter]
    fn clamped_count(&self) -> u32 {
        self.written.clamped_count
    }

    #[getter]
    fn no_entity_count(&self) -> u32 {
        self.written.no_entity_count
    }

    #[getter]
    fn other_measurement_count(&self) -> u32 {
        self.written.other_measurement_count
    }

    #[getter]
    fn unseen_measurements(&self) -> (Option<&str>, Option<&str>) {
        let [no_entity, other] = &self.written.unseen_measurements;
        (no_entity.as_deref(), other.as_deref())
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
    stored_rows: u64,
    stored_values: u64,
    stored_bytes: u64,
    log_file_bytes: u64,
    segment_bytes: u64,
    names_bytes: u64,
    free_bytes: u64,
    segments: u64,
    generation: u64,
}

impl From<plane::Stats> for Stats {
    fn from(stats: plane::Stats) -> Self {
        let Counts { rows, values, rejected, batches, log_bytes } = stats.counts;
        let plane::Stats { series, stored_rows, stored_values, space, segments, .. } = stats;
        Self {
            rows,
            values,
            batches,
            rejected,
            series,
            log_bytes,
            stored_rows,
            stored_values,
            stored_bytes: space.total(),
            log_file_bytes: space.log,
            segment_bytes: space.segments,
            names_bytes: space.tables,
            free_bytes: space.free,
            segments,
            generation: stats.generation,
        }
    }
}

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Compacted {
    blocks: u64,
    merged: u64,
    expired: u64,
    held: u64,
    purged: u64,
    bytes_written: u64,
}

impl From<plane::Compacted> for Compacted {
    fn from(done: plane::Compacted) -> Self {
        let plane::Compacted { blocks, merged, expired, held, purged, bytes_written } = done;
        Self { blocks, merged, expired, held, purged, bytes_written }
    }
}

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Deleted {
    rows: u64,
    entities: u64,
    measurements: Vec<String>,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

impl From<plane::Deleted> for Deleted {
    fn from(deleted: plane::Deleted) -> Self {
        let plane::Deleted { rows, entities, measurements, times_ns } = deleted;
        let (first_ns, last_ns) = times_ns.unzip();
        Self { rows, entities, measurements, first_ns, last_ns }
    }
}

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Upcoming {
    retention_seconds: Option<u64>,
    generation: u64,
    log_bytes_due: u64,
    log_since_ns: Option<i64>,
    due_ns: Option<i64>,
}

impl From<plane::Upcoming> for Upcoming {
    fn from(upcoming: plane::Upcoming) -> Self {
        let plane::Upcoming { retention_seconds, generation, log_bytes_due, log_since_ns, due_ns } =
            upcoming;
        let retention_seconds = (retention_seconds > 0).then_some(retention_seconds);
        Self { retention_seconds, generation, log_bytes_due, log_since_ns, due_ns }
    }
}

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Verified {
    blocks: u64,
    segments: u64,
    rows: u64,
    values: u64,
    damages: Vec<String>,
}

impl From<plane::Verified> for Verified {
    fn from(found: plane::Verified) -> Self {
        let plane::Verified { blocks, segments, rows, values, damages } = found;
        Self { blocks, segments, rows, values, damages }
    }
}

/// Name, length and SHA-256 of a file of a backup.
pub(crate) type SavedFile = (String, u64, [u8; 32]);

#[pyclass(frozen, get_all, module = "fleetcast._core")]
pub(crate) struct Saved {
    files: Vec<SavedFile>,
    bytes_written: u64,
    bytes_linked: u64,
    rows: u64,
    values: u64,
    content: [u8; 32],
}

impl From<plane::Saved> for Saved {
    fn from(saved: plane::Saved) -> Self {
        let plane::Saved { files, bytes_written, bytes_linked, rows, values, content } = saved;
        let files = files.into_iter().map(|file| (file.name, file.bytes, file.sha256)).collect();
        Self { files, bytes_written, bytes_linked, rows, values, content }
    }
}
