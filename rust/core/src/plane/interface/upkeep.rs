//! Compaction, deletes and retention.

use crate::model::clock::CallTime;
use crate::model::error::Error;
use crate::plane::Plane;
use crate::plane::compactor::plan::UpkeepSchedule;
use crate::plane::compactor::rest::CompactionTrigger;
use crate::plane::compactor::{CompactionReport, DeleteReport};
use crate::storage::tombstone::Extent;

/// Upkeep.
impl Plane {
    /// Compacts the log if it is `due` at `now`, merges segments, and removes rows that retention
    /// hides. Expiry is held if the clock `now` may have jumped (O2). Returns `None` if another
    /// process compacts. Example: `plane.compact(CompactionTrigger::Now, now_ns)` moves the whole
    /// log into segments.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`] or [`Error::DiskFull`]. Stored rows stay as they
    /// were.
    pub fn compact(
        &self,
        due: CompactionTrigger,
        now: impl Into<CallTime>,
    ) -> Result<Option<CompactionReport>, Error> {
        self.compactor.compact(due, now.into())
    }

    /// Returns the work that [`Self::compact`] has left from `now_ns` on if blocks may become
    /// `age_ns` old. A scheduler can keep the answer and need not open the plane again to ask.
    /// Example: `due_ns` = midnight means that no work is due before midnight, unless rows arrive.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`].
    pub fn upcoming(&self, age_ns: i64, now_ns: i64) -> Result<UpkeepSchedule, Error> {
        self.compactor.upcoming(age_ns, now_ns)
    }

    /// Hides the rows of `extent` that are committed by now from every read of every process. A dry
    /// run only counts them. A later [`Self::compact`] removes them from disk. Rows that are
    /// written later into the same extent are not hidden. Returns `None` if another process
    /// compacts. Example: an extent with `entities: vec!["e1".into()]` and every instant hides all
    /// rows of `e1`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`], [`Error::DiskFull`], or [`Error::Invalid`] if too
    /// many deletes wait for compaction. After an error no row is hidden.
    pub fn delete(&self, extent: &Extent, is_dry_run: bool) -> Result<Option<DeleteReport>, Error> {
        self.writer.flush()?;
        self.compactor.delete(extent, is_dry_run)
    }

    /// Sets how long rows are kept. 0 keeps them forever. Older rows vanish at once from every read
    /// of every process. A later [`Self::compact`] removes them from disk. Example:
    /// `plane.set_retention(30 * 86_400)` keeps rows for 30 days.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn set_retention(&self, seconds: u64) -> Result<(), Error> {
        self.compactor.set_retention(seconds)
    }

    /// Sets how long the hours of expired rows are kept. 0 removes them. Windows of an hour are
    /// answered from them, as they were answered from their rows. Returns false if another process
    /// compacts. Example: with a retention of 30 days and `plane.keep_hours(5 * 365 * 86_400)`,
    /// hourly means of five years can be read.
    ///
    /// # Errors
    /// Returns the errors of [`Self::follow`] or [`Error::DiskFull`].
    pub fn keep_hours(&self, seconds: u64) -> Result<bool, Error> {
        self.compactor.keep_hours(seconds)
    }
}
