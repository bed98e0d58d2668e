//! The promises of every store of a tenant. The promises do not depend on the way in which a store
//! keeps its bytes.
//!
//! A store sees only sealed bytes. Their meaning is known to the layers above. The promises are
//! weak enough for a replicated store behind a network. Names and blocks are only appended, names
//! by compare-and-swap. No call needs a transaction that spans another call.
//!
//! The history of a store may fork: a database that fails over or is restored may have lost data
//! that a handle was shown. The handle must detect that. It knows entries, pages and manifests only
//! from [`Store::view`], [`Store::names_after`] and [`Store::append_names`]. A sealed blob begins
//! with a random id. So the store remembers the id of the last blob of each kind, and the statement
//! that reads or appends compares these ids. If an id differs, or the generation fell, every call
//! from then on returns [`crate::model::error::Error::Poisoned`]. The handle is closed, and the
//! next handle reads from the beginning.

use std::path::{Path, PathBuf};

use super::entries::{LogEntry, LogView, NewBlock, StoreCounts};
use super::key_turns::KeyTurns;
use super::locks::{CompactionLock, SegmentsLock};
use super::names::{FirstIds, NamesPage, NewNames};
use super::snapshot::StoreSnapshot;
use crate::model::error::Result;

/// Random id of a segment.
pub type SegmentId = [u8; 16];

/// The way in which a store takes over a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A hard link: the file may lose its other names.
    Hard,
    /// A symbolic link: the name is valid as long as the file keeps its place.
    Symbolic,
}

/// Bytes on disk, by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Files of the log, reserved space included.
    pub log: u64,
    /// Segments.
    pub segments: u64,
    /// Names, the manifest and the small records in tables.
    pub tables: u64,
    /// Free pages in the file of the tables.
    pub free: u64,
}

impl Space {
    /// Returns the sum of all bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.log + self.segments + self.tables + self.free
    }
}

/// A segment that is being written. Dropping it before [`Self::finish`] discards it.
pub trait NewSegment {
    /// Appends bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the content durable. The next [`Store::replace_manifest`] makes the name durable.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn finish(self: Box<Self>) -> Result<()>;

    /// Finishes the segment as [`Self::finish`] does, but its content may become durable as late as
    /// with [`Store::load_snapshot`].
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn finish_content(self: Box<Self>) -> Result<()>;
}

/// The bytes of one tenant. Any thread may call any method.
///
/// # Errors
/// Every method returns the errors of [`crate::model::error::Error`] that the machine causes. No
/// error means that only part of a call took effect. After [`crate::model::error::Error::Unknown`]
/// the whole call may have taken effect, or not. The same holds for
/// [`crate::model::error::Error::Poisoned`] and [`crate::model::error::Error::Io`] from
/// [`Self::append`] and its parts. After [`crate::model::error::Error::Unavailable`] the call took
/// no effect.
pub trait Store: Send + Sync {
    /// Appends a page of names under ids that no name has yet. Returns `None`, and stores no page,
    /// if `after` is not the last page. The caller must then read the later pages first, because
    /// its names may have their ids by now.
    ///
    /// # Errors
    /// Returns the errors of [`Store`]. After [`crate::model::error::Error::Io`] the page may be
    /// stored.
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>>;

    /// Returns pages of names that were registered after page `after`, oldest first: at least one,
    /// if there are any.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>>;

    /// Appends blocks and their counts, all or none. They are durable when this returns. Every
    /// later [`Self::log_after`] of any process shows the blocks next to each other and in order.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        let end = self.append_unsynced(blocks)?;
        self.sync(end)
    }

    /// Appends blocks as [`Self::append`] does, but may return before they are durable and shown.
    /// Returns a position behind the blocks. A [`Self::sync`] of the position makes the blocks
    /// durable and shown. The caller must call that or [`Self::leave`].
    ///
    /// Only this handle can use the position. On a store behind a network it may be a ticket for
    /// the commit that takes the blocks. This call joins or begins that commit, and [`Self::sync`]
    /// waits for it. So a thread that must not wait can leave the sync to another thread. A store
    /// that has no reason to wait may commit here and return 0.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64>;

    /// Returns once all blocks that were appended before position `end` are durable. It does not
    /// matter which process appended or synced them, so one call is enough for all earlier appends.
    /// With a ticket it returns the result of the ticket's commit, as often as it is called. A
    /// caller with several tickets calls it for each ticket, and waits no longer for that. Any
    /// thread may call it, also after [`Self::close`].
    ///
    /// # Errors
    /// Returns the errors of [`Store`]. After an error the blocks may or may not be stored.
    fn sync(&self, end: u64) -> Result<()>;

    /// Gives up on blocks that were appended before position `end`. They count as blocks of a
    /// process that died: the next read shows them, or no read ever does. A ticket is forgotten.
    fn leave(&self, end: u64);

    /// Returns the state for a reader that has applied everything up to position `after` and has
    /// the manifest of `generation`. The state shows all blocks that any process acknowledged
    /// before the call.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn view(&self, after: u64, generation: u64) -> Result<LogView>;

    /// Returns blocks after position `after` that are not compacted, oldest first. It may return
    /// some of them only. Empty means that there are none.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>>;

    /// Returns the blocks at these positions. `sequences` ascends, and so do the blocks.
    ///
    /// # Errors
    /// Returns the errors of [`Store`], [`crate::model::error::Error::Stale`] if a position was
    /// compacted, and [`crate::model::error::Error::Corrupt`] if a position never existed.
    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>>;

    /// Returns the last position of the log, or 0 if the log is empty.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn head(&self) -> Result<u64>;

    /// Returns the position that came with the last block of the import with this key.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>>;

    /// Returns the counters since the store was created.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn counts(&self) -> Result<StoreCounts>;

    /// Takes the lock of the one compactor. Returns `None` if another handle has it. From then on
    /// this handle reads all commits of earlier holders, even of a holder that died during the
    /// commit.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>>;

    /// Begins a segment, which no reader sees before a manifest names it. The caller has the
    /// compaction lock, or loads a store that was just made.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>>;

    /// Begins a segment that no manifest will name. Only this handle reads and removes it, by the
    /// same methods as other segments. The segment may be kept in any place. If the handle dies,
    /// the segment is removed like other segments that no manifest names.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn create_scratch_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.create_segment(id)
    }

    /// Returns `length` bytes of a segment from `offset` on.
    ///
    /// # Errors
    /// Returns the errors of [`Store`], [`crate::model::error::Error::Stale`] if the segment was
    /// removed, and [`crate::model::error::Error::Corrupt`] if the segment ends before.
    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Returns the bytes of a segment.
    ///
    /// # Errors
    /// Returns the errors of [`Store`], and [`crate::model::error::Error::Stale`] if the segment
    /// was removed.
    fn segment_bytes(&self, id: &SegmentId) -> Result<u64>;

    /// Announces that the ends of these segments, with their lengths in bytes, will be read soon.
    /// The store may fetch remote segments in the meantime. The later read reports a failure.
    fn prefetch(&self, _segments: &mut dyn Iterator<Item = (SegmentId, u64)>) {}

    /// Returns all segments, named by a manifest or not. Of the segments being written, it returns
    /// only segments that the holder of the compaction lock has begun.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn segments(&self) -> Result<Vec<SegmentId>>;

    /// Keeps all segments: while the result lives, no handle gets [`Self::lock_removal`]. Any
    /// number of readers may hold such a lock, each for as long as it reads. The call waits for a
    /// removal in progress, which takes no longer than the removal of files.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>>;

    /// Takes the right to remove segments. Returns `None` if a reader has pinned them. The segments
    /// then stay until a later compaction.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>>;

    /// Removes a segment that no manifest names any more. The caller has [`Self::lock_removal`], or
    /// only this handle knows the segment.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn remove_segment(&self, id: &SegmentId) -> Result<()>;

    /// Replaces the manifest of `generation` by the next manifest. The same commit removes the log
    /// up to position `compacted`. Returns false and changes no data if the manifest has another
    /// generation by now, or if this handle lost the compaction lock.
    ///
    /// # Errors
    /// Returns the errors of [`Store`]. After [`crate::model::error::Error::Io`] the manifest may
    /// have been replaced.
    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool>;

    /// Checks all stored records except segments. Returns a line for each record that is damaged or
    /// contradicts another record. Does not open sealed bytes.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if no record can be checked, and the errors
    /// of [`Store`].
    fn verify(&self) -> Result<Vec<String>>;

    /// Sets the number of seconds that rows are kept. 0 for ever.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn set_retention(&self, seconds: u64) -> Result<()>;

    /// Returns the bytes that the store occupies on disk, overhead included.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn space(&self) -> Result<Space>;

    /// Returns numbers and manifest at this instant. While the caller has the compaction lock, the
    /// named parts of the log and the named segments stay.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn snapshot(&self) -> Result<StoreSnapshot>;

    /// Returns the file that holds a segment and no other bytes, or `None` if there is no such
    /// file. A copier of the segment may link the file instead.
    fn segment_file(&self, id: &SegmentId) -> Option<PathBuf>;

    /// Takes over a file that holds a segment, by a link of this kind. Returns false if that is not
    /// possible. The caller must then write the segment.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn link_segment(&self, id: &SegmentId, file: &Path, link: Link) -> Result<bool>;

    /// Loads pages of names, in order, into a store that was just made. The store cannot be used
    /// before [`Self::load_snapshot`].
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn load_names(&self, pages: &[NamesPage]) -> Result<()>;

    /// Replaces existing pages of names, found by their numbers.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn replace_names(&self, pages: &[NamesPage]) -> Result<()>;

    /// Loads blocks of the log that are not compacted, as [`Self::load_names`] loads names.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn load_log(&self, entries: &[LogEntry]) -> Result<()>;

    /// Ends the loading of a store. Its names, blocks and segments are then complete and durable.
    ///
    /// # Errors
    /// Returns the errors of [`Store`].
    fn load_snapshot(&self, snapshot: &StoreSnapshot) -> Result<()>;

    /// Returns the calls for turns of a data key, or `None` if the keys of this store cannot turn.
    fn key_turns(&self) -> Option<&dyn KeyTurns> {
        None
    }

    /// Ends the work of this handle. Every later call fails with
    /// [`crate::model::error::Error::Closed`], also a call that a longer operation in progress
    /// makes.
    fn close(&self);

    /// Fails if [`Self::close`] was called. For work that makes no other call of the store.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Closed`] after [`Self::close`].
    fn check_open(&self) -> Result<()>;
}
