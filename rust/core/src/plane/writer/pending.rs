//! Batches between log and acknowledgement, and the answer about them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::error::Result;
use crate::model::fault::Fault;
use crate::plane::sealed::SealedStore;

/// Outcome of a batch that was not refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Records stored.
    pub accepted_count: u32,
    /// Indices of the records rejected one by one, ascending.
    pub rejected_indices: Vec<u32>,
    /// Faults of the first rejected records of another protocol, see
    /// [`crate::model::batch::Batch::dropped`].
    pub dropped: Vec<Fault>,
    /// Lines of the text that was written, 0 if the batch has no text.
    pub line_count: usize,
    /// Stored records whose time was in the future and was replaced by the ingest instant.
    pub clamped_count: u32,
    /// Stored records that no read shows, because they have no `entity_id`.
    pub no_entity_count: u32,
    /// Other stored records that no read of the service shows, because it does not serve their
    /// measurement.
    pub other_measurement_count: u32,
    /// Measurement of the first record of each of these two counts, at most 64 characters.
    pub unseen_measurements: [Option<String>; 2],
    /// Time that the store took to make the batch durable, including waits for other commits.
    pub commit: Duration,
}

/// A batch that was appended: no read sees it yet, and a power cut may lose it.
///
/// A sync covers all batches that were appended before it began. So a caller with several batches
/// syncs any of them, and the others then wait no longer. If this value is dropped without a sync,
/// the batch may be stored or lost, as if the process had died.
#[must_use = "a batch is acknowledged once it was waited for"]
pub struct PendingBatch {
    written: WriteReport,
    started: Instant,
    /// Store and position that is to become durable. `None` if there is no need to wait.
    unsynced: Option<(Arc<SealedStore>, u64)>,
}

impl PendingBatch {
    pub(super) fn none(written: WriteReport, started: Instant) -> Self {
        Self { written, started, unsynced: None }
    }

    pub(super) fn new(
        written: WriteReport,
        started: Instant,
        sealed: Arc<SealedStore>,
        end: u64,
    ) -> Self {
        Self { written, started, unsynced: Some((sealed, end)) }
    }

    /// Returns true if [`Self::wait`] may have to wait for the disk.
    #[must_use]
    pub fn needs_sync(&self) -> bool {
        self.unsynced.is_some()
    }

    /// Returns when the batch is durable. The sync covers all batches that were appended before it.
    ///
    /// # Errors
    /// Returns the errors of a failed sync, which every waiting call gets. The batch may be stored
    /// all the same.
    pub fn sync(&self) -> Result<()> {
        self.unsynced.as_ref().map_or(Ok(()), |(sealed, end)| sealed.store.sync(*end))
    }

    /// Returns when the batch is durable, by this sync or an earlier one. From then on the batch is
    /// acknowledged.
    ///
    /// # Errors
    /// Returns the errors of [`Self::sync`].
    pub fn wait(mut self) -> Result<WriteReport> {
        self.sync()?;
        self.unsynced = None;
        let commit = self.started.elapsed();
        Ok(WriteReport { commit, ..std::mem::take(&mut self.written) })
    }
}

impl Drop for PendingBatch {
    fn drop(&mut self) {
        if let Some((sealed, end)) = &self.unsynced {
            sealed.store.leave(*end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::WriteLimits;
    use crate::plane::{Acknowledgement, Plane};
    use crate::storage::store::DirectoryPlanes;
    use crate::wire::Format;

    const BODY: &[u8] = br#"[{"measurement": "link", "time": "2026-01-01T00:00:00Z",
        "tags": {"entity_id": "e1"}, "fields": {"snr_db": 1.5}}]"#;

    fn append(plane: &Plane, body: &[u8], acknowledge: Acknowledgement) -> PendingBatch {
        let limits = WriteLimits::default();
        let now_ns = 1_790_000_000_000_000_000;
        plane.append(Format::Json, body, &limits, now_ns, acknowledge).unwrap()
    }

    fn rows(plane: &Plane) -> u64 {
        plane.stats().unwrap().stored_rows
    }

    fn with_plane(test: impl Fn(Plane)) {
        let directory = tempfile::tempdir().unwrap();
        let planes = DirectoryPlanes::new(directory.path());
        Plane::create(&planes, "plane", &[7; 32]).unwrap();
        test(Plane::open(&planes, "plane", &[7; 32], "acme").unwrap());
    }

    #[test]
    fn batches_are_seen_once_one_of_them_was_waited_for() {
        with_plane(|plane| {
            let [first, second] = [(); 2].map(|()| append(&plane, BODY, Acknowledgement::Durable));
            assert!(first.needs_sync());
            assert_eq!(rows(&plane), 0);
            assert_eq!(second.wait().unwrap().accepted_count, 1);
            assert_eq!(rows(&plane), 2);
            assert_eq!(first.wait().unwrap().accepted_count, 1);
        });
    }

    #[test]
    fn a_batch_that_nobody_waits_for_is_there_for_the_next_read() {
        with_plane(|plane| {
            drop(append(&plane, BODY, Acknowledgement::Durable));
            assert_eq!(rows(&plane), 1);
        });
    }

    #[test]
    fn a_batch_outlives_the_handle_it_was_written_with() {
        with_plane(|plane| {
            let pending = append(&plane, BODY, Acknowledgement::Durable);
            plane.close();
            drop(plane);
            assert_eq!(pending.wait().unwrap().accepted_count, 1);
        });
    }

    #[test]
    fn nothing_is_waited_for_where_nothing_was_appended() {
        with_plane(|plane| {
            assert!(!append(&plane, b"[]", Acknowledgement::Durable).needs_sync());
            let buffered = append(&plane, BODY, Acknowledgement::Buffered { bytes_max: 1_000 });
            assert!(!buffered.needs_sync());
            assert_eq!(buffered.wait().unwrap().accepted_count, 1);
            assert_eq!(rows(&plane), 0);
            plane.flush().unwrap();
            assert_eq!(rows(&plane), 1);
        });
    }
}
