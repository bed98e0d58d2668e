//! Schemas that consumers may take or leave.

use fleetcast_core::query::Frame;
use fleetcast_core::query::scan::ScanSchema;

use crate::interface::ArrowSchema;
use crate::rows::schema_of;
use crate::schema::schema_of_frame;

/// A schema that is released when it is dropped, unless a consumer has moved it out.
#[repr(transparent)]
pub struct OwnedSchema(ArrowSchema);

// SAFETY: our schemas are plain memory that the structure alone owns, without ties to a thread.
unsafe impl Send for OwnedSchema {}

impl From<&Frame> for OwnedSchema {
    fn from(frame: &Frame) -> Self {
        Self(schema_of_frame(frame))
    }
}

impl From<&ScanSchema> for OwnedSchema {
    fn from(rows: &ScanSchema) -> Self {
        Self(schema_of(rows))
    }
}

impl Drop for OwnedSchema {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: `release` is still set, so the schema has not been released, and `self` owns
            // it.
            unsafe { release(&raw mut self.0) };
        }
    }
}
