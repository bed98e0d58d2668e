//! Compaction, deletes and retention.

use crate::model::clock::Now;
use crate::model::error::Error;
use crate::plane::Plane;
use crate::plane::compactor::plan::Upcoming;
use crate::plane::compactor::rest::Due;
use crate::plane::compactor::{Compacted, Deleted};
use crate::storage::tombstone::Extent;

/// Upkeep.
impl Plane {
    /// Compacts the log if it is `due` at `now`, merges segments, and removes those that
    /// retention hides, unless `now` may be a clock that has jumped (O2). `None` if another process
    /// is at it.
    ///
    /// # Errors
    /// Those of [`Self::follow`], [`Error::DiskFull`]; what is stored is as it was before.
    pub fn compact(&self, due: Due, now: impl Into<Now>) -> Result<Option<Compacted>, Error> {
        self.compactor.compact(due, now.into())
    }

    /// Work that [`Self::compact`] has left from `now_ns` on, where blocks may become `age_ns` old,
    /// so that nobody has to open the plane to ask.
    ///
    /// # Errors
    /// Those of [`Self::follow`].
    pub fn upcoming(&self, age_ns: i64, now_ns: i64) -> Result<Upcoming, Error> {
        self.compactor.upcoming(age_ns, now_ns)
    }

    /// Hides the rows of `extent` that are committed by now from every read of every process, or
    /// only counts them. A later [`Self::compact`] removes them from disk; rows written later into
    /// the same extent are not hidden. `None` where another process compacts.
    ///
    /// # Errors
    /// Those of [`Self::follow`], [`Error::DiskFull`], and [`Error::Invalid`] where too many deletes
    /// wait for compaction; then nothing is hidden.
    pub fn delete(&self, extent: &Extent, is_dry_run: bool) -> Result<Option<Deleted>, Error> {
        self.writer.flush()?;
        self.compactor.delete(extent, is_dry_run)
    }

    /// Sets how long rows are kept, 0 for ever: older ones vanish from every read at once, of any
    /// process, and from disk with a later [`Self::compact`].
    ///
    /// # Errors
    /// The store's.
    pub fn set_retention(&self, seconds: u64) -> Result<(), Error> {
        self.compactor.set_retention(seconds)
    }
}
