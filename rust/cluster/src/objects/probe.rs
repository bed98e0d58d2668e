//! A check of the rights that the settings give in the object store.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::seal::random_plane_id;
use futures_util::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use tokio::time::timeout;

use super::Objects;
use super::answers::{ANSWER_TIMEOUT, in_time, unavailable};
use crate::identity::Id;

/// Steps of [`Objects::probe`].
const PROBING: [&str; 3] = ["write a probe", "read a probe", "delete a probe"];

impl Objects {
    /// Writes an object with a random name, reads it, looks for it in a list, deletes it, and
    /// checks that it is gone. Returns false if the list is refused.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the step that failed.
    pub(crate) async fn probe(&self) -> Result<bool> {
        let content = random_plane_id()?;
        let folder = self.prefix.clone().join("probe");
        let path = folder.clone().join(Id(content).hex());
        let [writing, reading, deleting] = PROBING;
        let gone = |error| match error {
            Error::Stale => unavailable(reading, "it is not there once it is written"),
            other => other,
        };
        let missing = |error| match error {
            Error::Stale => unavailable(writing, "there is no such bucket"),
            other => other,
        };
        let put = self.store.put(&path, PutPayload::from(content.to_vec()));
        in_time(writing, put).await.map_err(missing)?;
        let range = self.store.get_range(&path, 0..content.len() as u64);
        let read = in_time(reading, range).await.map_err(gone);
        let mut list = self.store.list(Some(&folder));
        let mut is_listed: object_store::Result<bool> = Ok(false);
        while let Ok(Some(found)) = timeout(ANSWER_TIMEOUT, list.next()).await {
            is_listed = is_listed.and_then(|listed| Ok(listed || found?.location == path));
        }
        let deleted = in_time(deleting, self.store.delete(&path)).await;
        if read?[..] != content {
            return Err(unavailable(reading, "it has another content"));
        }
        deleted?;
        match in_time(deleting, self.store.head(&path)).await {
            Err(Error::Stale) => Ok(is_listed.unwrap_or(false)),
            Err(error) => Err(error),
            Ok(_) => Err(unavailable(deleting, "it is there still")),
        }
    }
}
