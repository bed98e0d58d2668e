//! The plane behind a handle of Python.

use std::sync::{Arc, PoisonError, RwLock};

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::plane::{Pending, Plane, Written};
use fleetcast_front::acknowledgements::Acknowledgements;

/// A plane as long as it is open, also for those who use it without the interpreter.
pub(crate) struct OpenPlane {
    /// `None` once closed; a call under way keeps the plane until it ends, which is soon.
    plane: RwLock<Option<Arc<Plane>>>,
    /// Batches that were appended without the interpreter.
    appended: Acknowledgements<Appended>,
}

/// A batch, and the rest of its request.
struct Appended {
    pending: Pending,
    then: Box<dyn FnOnce(Result<Written>) + Send>,
}

impl OpenPlane {
    /// The plane, for one call.
    pub(crate) fn for_a_call(&self) -> Result<Arc<Plane>> {
        let plane = self.plane.read().unwrap_or_else(PoisonError::into_inner).clone();
        plane.ok_or(Error::Closed)
    }

    /// Has `then` called with the outcome of a batch once it is durable, at once where nothing is
    /// waited for, and else by this thread or by one that waits for the disk already.
    pub(crate) fn acknowledge(
        &self,
        pending: Pending,
        then: impl FnOnce(Result<Written>) + Send + 'static,
    ) {
        if !pending.needs_sync() {
            return then(pending.wait());
        }
        let sync = |all: &[Appended]| {
            // One that fails tells so again when it is waited for.
            for appended in all {
                drop(appended.pending.sync());
            }
        };
        self.appended.leave(Appended { pending, then: Box::new(then) }, sync, |appended| {
            (appended.then)(catching(|| appended.pending.wait()));
        });
    }

    /// Ends its use; false where it was closed already.
    pub(crate) fn close(&self) -> bool {
        self.close_if(|_| true)
    }

    /// As `close`, unless a call is under way; false then, too.
    pub(crate) fn close_unused(&self) -> bool {
        self.close_if(|plane| Arc::strong_count(plane) == 1)
    }

    fn close_if(&self, condition: impl FnOnce(&mut Arc<Plane>) -> bool) -> bool {
        let mut plane = self.plane.write().unwrap_or_else(PoisonError::into_inner);
        // Nobody can begin a call meanwhile.
        let taken = plane.take_if(condition);
        drop(plane);
        taken.is_some_and(|plane| {
            plane.close();
            true
        })
    }
}

impl From<Plane> for OpenPlane {
    fn from(plane: Plane) -> Self {
        Self { plane: RwLock::new(Some(Arc::new(plane))), appended: Acknowledgements::default() }
    }
}
