//! Converts results: values of the engine become objects of Python.

use std::num::NonZeroU64;

use pyo3::prelude::*;

use fleetcast_core::model::error::Result;
use fleetcast_core::model::fault::{Fault, LocationStep};
use fleetcast_core::plane;
use fleetcast_core::storage::write_id;
use fleetcast_docstrings::documented;
use fleetcast_service::answers::write_answer;

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct WriteResult {
    write_id: String,
    written: plane::WriteReport,
    /// Index of the piece's first row in the whole write.
    first_row: usize,
}

impl WriteResult {
    pub(crate) const fn written(&self) -> &plane::WriteReport {
        &self.written
    }

    pub(crate) fn new(written: plane::WriteReport, now_ns: i64) -> Result<Self> {
        Self::of_piece(written, 0, now_ns)
    }

    pub(crate) fn of_piece(
        written: plane::WriteReport,
        first_row: usize,
        now_ns: i64,
    ) -> Result<Self> {
        Ok(Self { write_id: write_id::new(now_ns)?, written, first_row })
    }
}

/// A record that was left out: number of the line or value, code, place in the record, sentence.
type DroppedRecord = (usize, &'static str, String, &'static str);

/// Describes a record that was left out by its first fault.
fn dropped_of(fault: &Fault) -> DroppedRecord {
    let mut number = 0;
    let mut path = Vec::new();
    for step in &fault.loc {
        match step {
            LocationStep::Index(index) => number = *index,
            LocationStep::Key(key) => path.push(key.as_str()),
        }
    }
    (number, fault.code.as_str(), path.join("."), fault.code.message())
}

#[documented]
#[pymethods]
impl WriteResult {
    fn __repr__(&self) -> String {
        let rejected_count = self.written.rejected_indices.len();
        format!("WriteResult(accepted={}, rejected={rejected_count})", self.written.accepted_count)
    }

    fn answer(&self) -> Vec<u8> {
        let (accepted, rejected) = (self.written.accepted_count, &self.written.rejected_indices);
        write_answer(&self.write_id, accepted, rejected, self.first_row)
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
    fn dropped(&self) -> Vec<DroppedRecord> {
        self.written.dropped.iter().map(dropped_of).collect()
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
}

/// Defines a class of Python, with an expression that makes each member from a value of the engine.
macro_rules! class {
    ($name:ident of $kind:ty as $value:ident { $($member:ident: $type:ty = $made:expr,)* }) => {
        #[fleetcast_docstrings::documented]
        #[pyo3::pyclass(frozen, get_all, module = "fleetcast._core")]
        pub(crate) struct $name {
            $($member: $type,)*
        }

        #[pyo3::pymethods]
        impl $name {
            fn __repr__(this: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                let members = [$(stringify!($member),)*];
                crate::results::described(this.as_any(), stringify!($name), &members)
            }
        }

        impl From<$kind> for $name {
            fn from($value: $kind) -> Self {
                Self { $($member: $made,)* }
            }
        }
    };
}
pub(crate) use class;

/// Returns a result as Python would make it. Example: `Deleted(rows=0, entities=0)`.
pub(crate) fn described(
    result: &Bound<'_, PyAny>,
    class: &str,
    members: &[&str],
) -> PyResult<String> {
    let member = |name: &&str| Ok(format!("{name}={}", result.getattr(*name)?.repr()?));
    let members = members.iter().map(member).collect::<PyResult<Vec<String>>>()?;
    Ok(format!("{class}({})", members.join(", ")))
}

class!(Stats of plane::Stats as stats {
    rows: u64 = stats.counts.rows,
    values: u64 = stats.counts.values,
    batches: u64 = stats.counts.batches,
    rejected: u64 = stats.counts.rejected,
    series: u64 = stats.series,
    log_bytes: u64 = stats.counts.log_bytes,
    stored_rows: u64 = stats.stored_rows,
    stored_values: u64 = stats.stored_values,
    stored_bytes: u64 = stats.space.total(),
    log_file_bytes: u64 = stats.space.log,
    segment_bytes: u64 = stats.space.segments,
    names_bytes: u64 = stats.space.tables,
    free_bytes: u64 = stats.space.free,
    segments: u64 = stats.segments,
    generation: u64 = stats.generation,
});

class!(Compacted of plane::CompactionReport as done {
    blocks: u64 = done.blocks,
    merged: u64 = done.merged,
    expired: u64 = done.expired,
    held: u64 = done.held,
    purged: u64 = done.purged,
    bytes_written: u64 = done.bytes_written,
});

class!(Deleted of plane::DeleteReport as deleted {
    rows: u64 = deleted.rows,
    entities: u64 = deleted.entities,
    measurements: Vec<String> = deleted.measurements,
    first_ns: Option<i64> = deleted.times_ns.map(|ends| ends.0),
    last_ns: Option<i64> = deleted.times_ns.map(|ends| ends.1),
    hours: u64 = deleted.hours,
});

class!(KeptHours of plane::KeptHoursStats as kept {
    seconds: Option<NonZeroU64> = NonZeroU64::new(kept.seconds),
    hours: u64 = kept.hours,
    bytes: u64 = kept.bytes,
    first_ns: Option<i64> = kept.times_ns.map(|ends| ends.0),
    last_ns: Option<i64> = kept.times_ns.map(|ends| ends.1),
});

class!(Upcoming of plane::UpkeepSchedule as upcoming {
    retention_seconds: Option<NonZeroU64> = NonZeroU64::new(upcoming.retention_seconds),
    generation: u64 = upcoming.generation,
    log_bytes_due: u64 = upcoming.log_bytes_due,
    log_since_ns: Option<i64> = upcoming.log_since_ns,
    due_ns: Option<i64> = upcoming.due_ns,
});

class!(Verified of plane::VerificationReport as found {
    blocks: u64 = found.blocks,
    segments: u64 = found.segments,
    rows: u64 = found.rows,
    values: u64 = found.values,
    damages: Vec<String> = found.damages,
});

/// Name, length and SHA-256 of a file of a backup.
pub(crate) type SavedFileParts = (String, u64, [u8; 32]);

pub(crate) fn saved_files(files: Vec<SavedFileParts>) -> Vec<plane::SavedFile> {
    let of = |(name, bytes, sha256)| plane::SavedFile { name, bytes, sha256 };
    files.into_iter().map(of).collect()
}

class!(Saved of plane::SaveReport as saved {
    files: Vec<SavedFileParts> =
        saved.files.into_iter().map(|file| (file.name, file.bytes, file.sha256)).collect(),
    bytes_written: u64 = saved.bytes_written,
    bytes_linked: u64 = saved.bytes_linked,
    rows: u64 = saved.rows,
    values: u64 = saved.values,
    content: [u8; 32] = saved.content,
});
