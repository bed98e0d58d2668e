//! Pins: the segments that a reader needs stay until the reader has ended, however slow it is.
//!
//! Segments stay for a day after the last manifest that named them, which is enough for reads of
//! one view. A stream of rows, or a backup, may take longer.

use std::sync::Arc;
use std::time::Duration;

use fleetcast_core::model::error::Result;
use fleetcast_core::storage::seal::random_plane_id;
use fleetcast_core::storage::store::SegmentsLock;
use tokio::task::AbortHandle;
use tokio::time::interval;

use super::ClusterStore;
use crate::cluster::{Cluster, change};
use crate::identity::Id;

const WHAT: &str = "pin segments";

/// Time between renewals of a pin of ten minutes.
const RENEW_EVERY: Duration = Duration::from_mins(1);

const PIN: &str = "\
    INSERT INTO pin SELECT $2, plane, clock_timestamp(), clock_timestamp() + '10 min' FROM plane \
    WHERE plane = $1 AND wrapped_key IS NOT NULL RETURNING 1";
const RENEW: &str =
    "UPDATE pin SET until = clock_timestamp() + '10 min' WHERE pin = $1 RETURNING 1";
const RELEASE: &str = "DELETE FROM pin WHERE pin = $1 RETURNING 1";

/// A pin that ends with the reader. If the process dies, the pin runs out by itself.
struct ReaderPin {
    cluster: Arc<Cluster>,
    id: Id,
    renewing: AbortHandle,
}

impl SegmentsLock for ReaderPin {}

impl Drop for ReaderPin {
    fn drop(&mut self) {
        self.renewing.abort();
        let id = self.id;
        // No thread waits for this removal. If it fails, the pin runs out by itself.
        drop(self.cluster.spawn(move |pool| async move {
            drop(change(&pool, WHAT, RELEASE, &[&id]).await);
        }));
    }
}

impl ClusterStore {
    pub(super) fn pin(&self) -> Result<Box<dyn SegmentsLock>> {
        let id = Id(random_plane_id()?);
        if self.cluster.change(WHAT, PIN, &[&self.plane, &id])?.is_empty() {
            return Err(self.missing());
        }
        let renewing = self.cluster.spawn(move |pool| async move {
            let mut ticks = interval(RENEW_EVERY);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                // A renewal that fails is tried again with the next tick.
                drop(change(&pool, WHAT, RENEW, &[&id]).await);
            }
        })?;
        Ok(Box::new(ReaderPin { cluster: Arc::clone(&self.cluster), id, renewing }))
    }
}
