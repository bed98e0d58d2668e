//! A plane that is open, and batches of it that wait for their acknowledgement.

use std::sync::{Arc, PoisonError, RwLock};

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::plane::{Pending, Plane, Written};
use fleetcast_core::storage::store::Committer;

/// A plane as long as it is open.
pub struct OpenPlane {
    /// `None` once closed; a call under way keeps the plane until it ends, which is soon.
    plane: RwLock<Option<Arc<Plane>>>,
    /// Batches that were appended, and whose disk is waited for.
    appended: Committer<Pending>,
}

impl OpenPlane {
    /// The plane, for one call.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn for_a_call(&self) -> Result<Arc<Plane>> {
        let plane = self.plane.read().unwrap_or_else(PoisonError::into_inner).clone();
        plane.ok_or(Error::Closed)
    }

    /// Has `then` called with the outcome of a batch once it is durable: at once if the batch needs no
    /// sync, else by this thread or by a thread that waits for the disk already.
    pub fn acknowledge(
        &self,
        pending: Pending,
        then: impl FnOnce(Result<Written>) + Send + 'static,
    ) {
        if !pending.needs_sync() {
            return then(pending.wait());
        }
        // A sync that fails fails again when its batch is waited for.
        let sync = |batches: &[Pending]| {
            for batch in batches {
                drop(batch.sync());
            }
            Ok(())
        };
        let then = |pending: Pending, _| then(catching(|| pending.wait()));
        self.appended.commit_then(pending, 0, &sync, then);
    }

    /// Ends its use under all who hold it.
    pub fn close(&self) {
        self.close_if(|_| true);
    }

    /// Ends its use unless a call is under way, or batches wait for a flush: storing them may take
    /// as long as its disk takes. True if it is closed now.
    #[must_use]
    pub fn close_unused(&self) -> bool {
        self.close_if(|plane| Arc::strong_count(plane) == 1 && plane.buffered_bytes() == 0)
    }

    fn close_if(&self, condition: impl FnOnce(&Arc<Plane>) -> bool) -> bool {
        let mut plane = self.plane.write().unwrap_or_else(PoisonError::into_inner);
        // Nobody can begin a call meanwhile.
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
