//! The marker: an object with a random id, by which an installation knows its object store again.

use fleetcast_core::model::error::{Error, Result};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::time::timeout;

use super::Objects;
use super::answers::{READ_TIMEOUT, answer_of, in_time, unavailable};
use crate::identity::Id;

const READING: &str = "read the marker";
const WRITING: &str = "write the marker";

impl Objects {
    fn marker_path(&self) -> Path {
        self.prefix.clone().join("fleetcast-marker")
    }

    /// Returns the id in the marker, or `None` if there is no marker.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`].
    pub(crate) async fn marker(&self) -> Result<Option<Id>> {
        let path = self.marker_path();
        let read = timeout(READ_TIMEOUT, self.store.get_range(&path, 0..16)).await;
        match answer_of(READING, read) {
            Ok(bytes) => match bytes[..].try_into() {
                Ok(id) => Ok(Some(Id(id))),
                Err(_) => Err(unavailable(READING, "it has another length")),
            },
            Err(Error::Stale) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the marker.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`].
    pub(crate) async fn put_marker(&self, id: Id) -> Result<()> {
        let path = self.marker_path();
        let put = self.store.put(&path, PutPayload::from(id.0.to_vec()));
        match in_time(WRITING, put).await {
            Ok(_) => Ok(()),
            Err(Error::Stale) => Err(unavailable(WRITING, "there is no such bucket")),
            Err(error) => Err(error),
        }
    }
}
