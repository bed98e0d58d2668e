//! Reads: each looks at a single snapshot of the blocks and segments that the follower has applied.

pub(super) mod processors;

pub(super) mod describe;
pub(super) mod long_latest;

mod rows;

mod latest;
pub(super) mod scan;
mod series;
pub(super) mod stats;

pub(super) mod labelled;

/// A hash over everything that a scan answers.
mod answers;

use std::sync::Arc;

use super::caches::open_segments::OpenSegment;
use super::follower::{Follower, MISSING, VIEWS_MAX};
use super::registry::NamesRegistry;
use super::sealed::SealedStore;
use crate::model::clock::CallTime;
use crate::model::error::{Error, Result};
use crate::storage::manifest::SegmentEntry;
use crate::storage::segment::hour_of;

/// Reads of one tenant.
///
/// Invariant: a read changes only caches. It takes its snapshot under the follower's lock, and
/// reads segments and blocks without the lock. If compaction removes a segment or block of the
/// snapshot, the read starts again from a newer snapshot.
pub(super) struct Reader {
    sealed: Arc<SealedStore>,
    registry: Arc<NamesRegistry>,
    follower: Arc<Follower>,
}

impl Reader {
    pub(super) fn new(
        sealed: Arc<SealedStore>,
        registry: Arc<NamesRegistry>,
        follower: Arc<Follower>,
    ) -> Self {
        Self { sealed, registry, follower }
    }

    pub(super) fn read_instant(&self, clock_ns: i64) -> Result<i64> {
        self.follower.follow()?;
        Ok(self.follower.read_instant(clock_ns))
    }

    pub(super) fn knows_any<T: AsRef<str>>(&self, measurements: &[T]) -> Result<bool> {
        self.follower.follow()?;
        let names = self.registry.names();
        Ok(measurements.iter().any(|name| names.catalog.measurement(name.as_ref()).is_some()))
    }

    /// Returns the entities of a measurement that were ever written, in byte order.
    pub(super) fn entity_ids(&self, measurement: &str) -> Result<Vec<String>> {
        self.follower.follow()?;
        let names = self.registry.names();
        let catalog = &names.catalog;
        let Some(measurement) = catalog.measurement(measurement) else { return Ok(Vec::new()) };
        let entities = (0..).zip(catalog.entities());
        let of_measurement = entities.filter(|(_, entity)| entity.measurement == measurement);
        let ids = of_measurement.map(|(index, _)| catalog.entity_id(index).to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Returns the instant before which only hours are kept, if some of these hours end after
    /// `start_ns`.
    pub(super) fn rows_from_ns(&self, start_ns: i64, now: CallTime) -> Option<i64> {
        let kept_from_ns = self.follower.kept_from_ns(now);
        let hours_from_ns = self.follower.hours_from_ns(now)?.max(hour_of(start_ns));
        let manifest = self.follower.manifest();
        let has_hours = manifest.hours.segments_in(&(hours_from_ns..kept_from_ns)).next().is_some();
        (hours_from_ns < kept_from_ns && has_hours).then_some(kept_from_ns)
    }

    /// Returns the segment of an entry of the manifest. The caller holds no lock of the names.
    fn open_segment(&self, entry: &SegmentEntry) -> Result<Arc<OpenSegment>> {
        self.sealed.segment(entry, &self.registry.names().catalog)
    }

    /// Reads from the state that was followed, and again if compaction overtakes the read. The log
    /// was followed once for this read: following costs a round trip to a remote store.
    ///
    /// A store may keep segments for a while that the manifest no longer names. Their key may be
    /// dropped, so a read that they overtake finds damage.
    fn retrying<R>(&self, mut read: impl FnMut() -> Result<R>) -> Result<R> {
        for _ in 0..VIEWS_MAX {
            let generation = self.follower.generation();
            let outcome = read();
            let Err(Error::Stale | Error::Corrupt { .. }) = outcome else {
                self.sealed.caches.settle();
                return outcome;
            };
            self.follower.follow()?;
            if self.follower.generation() == generation {
                return outcome.map_err(|error| match error {
                    Error::Stale => MISSING,
                    error => error,
                });
            }
        }
        Err(Error::Stale)
    }
}
