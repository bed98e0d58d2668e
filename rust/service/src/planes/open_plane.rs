//! A plane that is open, and its batches that wait for their acknowledgement.

use std::sync::{Arc, PoisonError, RwLock};

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::plane::{PendingBatch, Plane, WriteReport};
use fleetcast_core::storage::store::Committer;

/// A plane, for as long as it is open.
pub struct OpenPlane {
    /// `None` once closed. A call under way keeps the plane until it ends, which is soon.
    plane: RwLock<Option<Arc<Plane>>>,
    /// Batches that were appended and wait for the disk.
    appended: Committer<PendingBatch>,
}

impl OpenPlane {
    /// Returns the plane for one call.
    ///
    /// # Errors
    /// Returns [`Error::Closed`] if the plane was closed.
    pub fn for_a_call(&self) -> Result<Arc<Plane>> {
        let plane = self.plane.read().unwrap_or_else(PoisonError::into_inner).clone();
        plane.ok_or(Error::Closed)
    }

    /// Calls `then` with the outcome of a batch once the batch is durable. If the batch needs no
    /// sync, this thread calls it at once. Else this thread calls it after a sync, or a thread that
    /// already waits for the disk.
    pub fn acknowledge(
        &self,
        pending: PendingBatch,
        then: impl FnOnce(Result<WriteReport>) + Send + 'static,
    ) {
        if !pending.needs_sync() {
            return then(pending.wait());
        }
        // If a sync fails, waiting for its batch returns the error again.
        let sync = |batches: &[PendingBatch]| {
            for batch in batches {
                drop(batch.sync());
            }
            Ok(())
        };
        let then = |pending: PendingBatch, _| then(catching(|| pending.wait()));
        self.appended.commit_then(pending, 0, &sync, then);
    }

    /// Closes the plane, even if other code holds it.
    pub fn close(&self) {
        self.close_if(|_| true);
    }

    /// Closes the plane unless a call is under way or batches wait for a flush, which may take as
    /// long as the disk takes. Returns true if the plane is closed now.
    #[must_use]
    pub fn close_unused(&self) -> bool {
        self.close_if(|plane| Arc::strong_count(plane) == 1 && plane.buffered_bytes() == 0)
    }

    fn close_if(&self, condition: impl FnOnce(&Arc<Plane>) -> bool) -> bool {
        let mut plane = self.plane.write().unwrap_or_else(PoisonError::into_inner);
        // No call can begin while the lock is held.
        let taken = plane.take_if(|plane| condition(plane));
        let is_closed = plane.is_none();
        drop(plane);
        if let Some(plane) = taken {
            plane.close();
        }
        is_closed
    }
}

impl From<Plane> for OpenPlane {
    fn from(plane: Plane) -> Self {
        Self { plane: RwLock::new(Some(Arc::new(plane))), appended: Committer::default() }
    }
}
