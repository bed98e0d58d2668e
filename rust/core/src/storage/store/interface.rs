//! The promises of every store of a tenant, whatever keeps the bytes.
//!
//! A store sees only sealed bytes; what they mean is known above it. The promises are weak enough
//! for a replicated store behind a network: names and blocks are only ever appended, names by
//! compare-and-swap, and no call needs a transaction across another.
//!
//! A store whose history may fork (a database that fails over, or is restored, may have lost what a
//! handle was shown) finds that out by itself: all that a handle knows of entries, pages and
//! manifests, it was given by [`Store::view`], [`Store::names_after`] and [`Store::append_names`].
//! So its store remembers the random id that each sealed blob begins with, of the last one of each
//! kind, and has them compared by the same statement that reads or appends. One that differs, or a
//! generation that fell, is [`crate::model::error::Error::Poisoned`], from then on and for every
//! call: the handle is closed, and the next one begins anew.

use std::path::{Path, PathBuf};

use super::entries::{Counts, LogEntry, NewBlock, View};
use super::names::{FirstIds, NamesPage, NewNames};
use super::snapshot::Snapshot;
use crate::model::error::Result;

/// Id of a segment, drawn at random for each.
pub type SegmentId = [u8; 16];

/// Way in which a store takes over a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A name of its own: the file may lose its others.
    Hard,
    /// A name that serves as long as the file is where it is.
    Symbolic,
}

/// Bytes on disk, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Files of the log, with the space that is reserved in them.
    pub log: u64,
    /// Segments.
    pub segments: u64,
    /// Names, the manifest and the little else in tables.
    pub tables: u64,
    /// Free pages of the tables' file.
    pub free: u64,
}

impl Space {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.log + self.segments + self.tables + self.free
    }
}

/// A segment that is being written. Dropped before [`Self::finish`], nothing of it counts.
pub trait NewSegment {
    /// Appends bytes.
    ///
    /// # Errors
    /// See [`Store`].
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the content durable; the name is with the next [`Store::replace_manifest`].
    ///
    /// # Errors
    /// See [`Store`].
    fn finish(self: Box<Self>) -> Result<()>;

    /// As [`Self::finish`], but durable no sooner than with [`Store::load_snapshot`].
    ///
    /// # Errors
    /// See [`Store`].
    fn finish_content(self: Box<Self>) -> Result<()>;
}

/// Held by the one compactor of a store, over all processes; freed with the process at the latest.
/// Where it is a lease, it may run out before it is dropped. Then whatever the holder does by it
/// changes nothing and fails with [`crate::model::error::Error::Overtaken`], or is refused as
/// [`Store::replace_manifest`] says.
pub trait CompactionLock: Send {}

/// Held by those who read segments that a newer manifest may no longer name, or alone by the one
/// who removes such segments; freed with the process at the latest.
pub trait SegmentsLock: Send + Sync {}

/// The bytes of one tenant. Every method may be called from any thread.
///
/// # Errors
/// Every method returns the errors of [`crate::model::error::Error`] that the machine causes; none
/// of them means that part of a call took effect. Some leave open whether all of it did:
/// [`crate::model::error::Error::Unknown`], and out of [`Self::append`] and its parts
/// [`crate::model::error::Error::Poisoned`] and [`crate::model::error::Error::Io`]. After
/// [`crate::model::error::Error::Unavailable`] nothing took effect.
pub trait Store: Send + Sync {
    /// Appends a page of names under ids that no name has yet. `None`, and nothing is stored, where
    /// `after` is not the last page: the caller has to look at the others first, since the names
    /// may have their ids by now.
    ///
    /// # Errors
    /// See [`Store`]; after [`crate::model::error::Error::Io`] the page may be stored.
    fn append_names(&self, after: u64, names: &NewNames) -> Result<Option<FirstIds>>;

    /// Pages of names registered after page `after`, oldest first, at least one if there is any.
    ///
    /// # Errors
    /// See [`Store`].
    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>>;

    /// Appends blocks and their counts, all or none of them. On return they are durable, and every
    /// later [`Self::log_after`] of any process shows them, in order and side by side.
    ///
    /// # Errors
    /// See [`Store`].
    fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        let end = self.append_unsynced(blocks)?;
        self.sync(end)
    }

    /// As [`Self::append`], but they are durable and shown no later than with a [`Self::sync`] of the
    /// position that is returned, which lies behind them. The caller owes that or [`Self::leave`].
    ///
    /// The number means something to this handle alone: of a store on a network it may be a ticket
    /// for the commit that takes the blocks, which this call joins or begins and [`Self::sync`]
    /// waits for. So a thread that must not wait can leave that to another. It may also do
    /// everything here, as one that has nothing to wait for, and return 0.
    ///
    /// # Errors
    /// See [`Store`].
    fn append_unsynced(&self, blocks: Vec<NewBlock>) -> Result<u64>;

    /// Returns once everything that was appended before position `end` is durable, whoever appended
    /// and whoever synced it: one call is enough for all who appended before it. With a ticket it
    /// returns the outcome of that one commit, to each who asks and as often as they do; whoever
    /// has several asks for each, and none waits longer for that. It is called from any thread, also
    /// after [`Self::close`].
    ///
    /// # Errors
    /// See [`Store`]: what was appended may or may not be stored.
    fn sync(&self, end: u64) -> Result<()>;

    /// Gives up on what was appended before position `end`: it counts as that of a process that
    /// died, and is shown by the next read or never. A ticket that is left is forgotten.
    fn leave(&self, end: u64);

    /// State for a reader that has applied everything up to position `after` and holds the
    /// manifest of `generation`. It shows all that was acknowledged before the call, by any process.
    ///
    /// # Errors
    /// See [`Store`].
    fn view(&self, after: u64, generation: u64) -> Result<View>;

    /// Blocks after position `after` that are not compacted, oldest first; some, not necessarily
    /// all: empty means none.
    ///
    /// # Errors
    /// See [`Store`].
    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>>;

    /// The blocks at these positions, ascending, in order.
    ///
    /// # Errors
    /// See [`Store`]; [`crate::model::error::Error::Stale`] for a position that was compacted, and
    /// [`crate::model::error::Error::Corrupt`] for one that never was.
    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>>;

    /// The last position of the log, 0 where it is empty.
    ///
    /// # Errors
    /// See [`Store`].
    fn head(&self) -> Result<u64>;

    /// The position that the last block of the import with this key came with.
    ///
    /// # Errors
    /// See [`Store`].
    fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>>;

    /// Counters since the store was created.
    ///
    /// # Errors
    /// See [`Store`].
    fn counts(&self) -> Result<Counts>;

    /// Takes the lock of the one compactor, `None` where another holds it. Whatever earlier holders
    /// committed is read from then on, even where they died of it.
    ///
    /// # Errors
    /// See [`Store`].
    fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>>;

    /// Begins a segment. Nobody sees it before a manifest names it. The caller has the compaction
    /// lock, or loads a store that was just made.
    ///
    /// # Errors
    /// See [`Store`].
    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>>;

    /// Begins a segment that no manifest will name: only this handle reads and removes it, by the
    /// same methods as others, and it may be anywhere. What a handle that died has left of such is
    /// removed as other segments that no manifest names.
    ///
    /// # Errors
    /// See [`Store`].
    fn create_scratch_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>> {
        self.create_segment(id)
    }

    /// `length` bytes of a segment from `offset` on.
    ///
    /// # Errors
    /// See [`Store`]; [`crate::model::error::Error::Stale`] where the segment is gone,
    /// [`crate::model::error::Error::Corrupt`] where it ends before.
    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Bytes of a segment.
    ///
    /// # Errors
    /// See [`Store`]; [`crate::model::error::Error::Stale`] where it is gone.
    fn segment_bytes(&self, id: &SegmentId) -> Result<u64>;

    /// Tells that the ends of these segments, of so many bytes each, will be read soon. What is far
    /// away may be fetched meanwhile; a fault shows when it is read.
    fn prefetch(&self, _segments: &mut dyn Iterator<Item = (SegmentId, u64)>) {}

    /// Every segment there is, named by a manifest or not, and of those that are being written only
    /// what the holder of the compaction lock has begun itself.
    ///
    /// # Errors
    /// See [`Store`].
    fn segments(&self) -> Result<Vec<SegmentId>>;

    /// Keeps all segments that there are: nobody gets [`Self::lock_removal`] before this is
    /// dropped. Any number of readers may hold one, each for as long as it reads. It waits for a
    /// removal that is under way, which takes no longer than removing files does.
    ///
    /// # Errors
    /// See [`Store`].
    fn pin_segments(&self) -> Result<Box<dyn SegmentsLock>>;

    /// Takes the right to remove segments, `None` where somebody has pinned them: then they stay
    /// for a later compaction.
    ///
    /// # Errors
    /// See [`Store`].
    fn lock_removal(&self) -> Result<Option<Box<dyn SegmentsLock>>>;

    /// Removes a segment that no manifest names any more; the caller has [`Self::lock_removal`], or
    /// nobody else knows the segment.
    ///
    /// # Errors
    /// See [`Store`].
    fn remove_segment(&self, id: &SegmentId) -> Result<()>;

    /// Replaces the manifest of `generation` by the next and, in the same commit, removes the log
    /// up to position `compacted`. False, and nothing is changed, where it is another by now, or the
    /// compaction lock that this handle took is lost.
    ///
    /// # Errors
    /// See [`Store`]; after [`crate::model::error::Error::Io`] it may have been replaced.
    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool>;

    /// Looks at all that is stored but segments: a line for each record that is damaged or
    /// contradicts another. What is sealed is not opened.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Corrupt`] where nothing can be looked at, and see [`Store`].
    fn verify(&self) -> Result<Vec<String>>;

    /// Sets how many seconds rows are kept, 0 for ever.
    ///
    /// # Errors
    /// See [`Store`].
    fn set_retention(&self, seconds: u64) -> Result<()>;

    /// Bytes that the store occupies on disk, its own overhead included.
    ///
    /// # Errors
    /// See [`Store`].
    fn space(&self) -> Result<Space>;

    /// Numbers and manifest of this instant. Nothing of the log or of the segments that it names
    /// goes while the caller holds the compaction lock.
    ///
    /// # Errors
    /// See [`Store`].
    fn snapshot(&self) -> Result<Snapshot>;

    /// File that holds a segment and nothing else, `None` where there is no such file: whoever
    /// copies the segment may link it instead.
    fn segment_file(&self, id: &SegmentId) -> Option<PathBuf>;

    /// Takes over a file that holds a segment, by a link of this kind; false where that cannot be,
    /// and it has to be written.
    ///
    /// # Errors
    /// See [`Store`].
    fn link_segment(&self, id: &SegmentId, file: &Path, link: Link) -> Result<bool>;

    /// Loads pages of names into a store that was just made, in order. It is of no use before
    /// [`Self::load_snapshot`].
    ///
    /// # Errors
    /// See [`Store`].
    fn load_names(&self, pages: &[NamesPage]) -> Result<()>;

    /// Replaces pages of names that are there, by their numbers.
    ///
    /// # Errors
    /// See [`Store`].
    fn replace_names(&self, pages: &[NamesPage]) -> Result<()>;

    /// As [`Self::load_names`], blocks of the log that are not compacted.
    ///
    /// # Errors
    /// See [`Store`].
    fn load_log(&self, entries: &[LogEntry]) -> Result<()>;

    /// Ends the loading of a store, whose names, blocks and segments are there and durable now.
    ///
    /// # Errors
    /// See [`Store`].
    fn load_snapshot(&self, snapshot: &Snapshot) -> Result<()>;

    /// Ends the work of this handle: every later call fails with
    /// [`crate::model::error::Error::Closed`], also where a longer piece of work that is under way
    /// makes it.
    fn close(&self);

    /// Fails once [`Self::close`] was called, for work that needs nothing of the store.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Closed`].
    fn check_open(&self) -> Result<()>;
}
