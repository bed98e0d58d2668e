//! The plane behind a handle of Python.

use std::sync::{Arc, PoisonError, RwLock};

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::plane::Plane;

/// A plane as long as it is open, also for those who use it without the interpreter.
pub(crate) struct OpenPlane {
    /// `None` once closed; a call under way keeps the plane until it ends, which is soon.
    plane: RwLock<Option<Arc<Plane>>>,
}

impl OpenPlane {
    /// The plane, for one call.
    pub(crate) fn for_a_call(&self) -> Result<Arc<Plane>> {
        let plane = self.plane.read().unwrap_or_else(PoisonError::into_inner).clone();
        plane.ok_or(Error::Closed)
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
        Self { plane: RwLock::new(Some(Arc::new(plane))) }
    }
}
