//! What every store of a tenant promises, whatever keeps the bytes.
//!
//! A store sees only sealed bytes; what they mean is known above it. The promises are weak enough
//! for a replicated store behind a network: names and blocks are only ever appended, names by
//! compare-and-swap, and no call needs a transaction across another.

mod group;
mod memory;
mod segment_files;

mod lmdb;

pub use lmdb::{LmdbStore, Peeked};
pub use memory::MemoryStore;

use crate::model::batch::{FieldType, NEW_SERIES_BASE};
use crate::model::error::{Error, Result};
use crate::model::names::{FieldId, SeriesId};

/// Id of a segment, drawn at random for each.
pub type SegmentId = [u8; 16];

/// Names that have no id yet, to become a page.
#[derive(Clone, Debug, Default)]
pub struct NewNames {
    /// Number of series.
    pub series: u32,
    /// Types of the fields.
    pub fields: Vec<FieldType>,
    /// The names themselves, sealed: series first, then fields.
    pub sealed_names: Vec<u8>,
}

/// Ids given to a page of names: those of its series count up from one number, those of its fields
/// from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstIds {
    /// Id of the first series.
    pub series: SeriesId,
    /// Id of the first field.
    pub field: FieldId,
}

/// One stored page of names. Only version 1 wrote a name on several pages, always under one id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesPage {
    /// Position in the order of registration, from 1.
    pub sequence: u64,
    /// Ids of the series on the page, in order.
    pub series: Vec<SeriesId>,
    /// Ids and types of the fields on the page, in order.
    pub fields: Vec<(FieldId, FieldType)>,
    /// The sealed names, series first.
    pub sealed_names: Vec<u8>,
}

impl FirstIds {
    /// Those of the page behind this one, which has `names`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where `names` do not fit below the limit.
    fn behind(self, names: &NewNames) -> Result<Self> {
        let next = |first: u32, count: usize| {
            let next = first.checked_add(u32::try_from(count).ok()?);
            next.filter(|next| *next <= NEW_SERIES_BASE)
        };
        let series = usize::try_from(names.series).ok().and_then(|count| next(self.series, count));
        let field = next(self.field, names.fields.len());
        let next = series.zip(field).map(|(series, field)| Self { series, field });
        let message = "a tenant has at most 2,147,483,648 series and as many fields".to_owned();
        next.ok_or(Error::Invalid { message })
    }
}

impl NamesPage {
    /// The page of these names under ids from `first` on.
    fn new(sequence: u64, first: FirstIds, names: &NewNames) -> Self {
        Self {
            sequence,
            series: (first.series..first.series + names.series).collect(),
            fields: (first.field..).zip(names.fields.iter().copied()).collect(),
            sealed_names: names.sealed_names.clone(),
        }
    }
}

/// What is counted in the same commit as the block it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records stored.
    pub rows: u64,
    /// Field values stored.
    pub values: u64,
    /// Records rejected one by one.
    pub rejected: u64,
    /// Batches stored.
    pub batches: u64,
    /// Bytes of the sealed blocks that are in the log; filled in by the store.
    pub log_bytes: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.rejected += other.rejected;
        self.batches += other.batches;
        self.log_bytes += other.log_bytes;
    }
}

/// A sealed block on its way into the log.
#[derive(Clone, Debug, Default)]
pub struct NewBlock {
    /// The sealed bytes; empty when there is nothing to store but counts.
    pub sealed: Vec<u8>,
    /// What the block adds to the counters.
    pub counts: Counts,
}

/// A sealed block of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log, from 1, without gaps at the end: the order of writing.
    pub sequence: u64,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// What a reader at some position needs to catch up, out of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// How often the manifest was replaced.
    pub generation: u64,
    /// The sealed manifest, where the reader does not have it yet.
    pub manifest: Option<Vec<u8>>,
    /// Blocks up to this position are in the manifest's segments.
    pub compacted: u64,
    /// Seconds that rows are kept, 0 for ever.
    pub retention_seconds: u64,
    /// Some blocks of the log from the reader's position on; empty means none.
    pub entries: Vec<LogEntry>,
}

/// A segment that is being written. Dropped before [`Self::finish`], nothing of it counts.
pub trait NewSegment {
    /// Appends bytes.
    ///
    /// # Errors
    /// See [`Store`].
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the segment durable, its name as well.
    ///
    /// # Errors
    /// See [`Store`].
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Held by the one compactor of a store, over all processes; freed with the process at the latest.
pub trait CompactionLock: Send {}

/// The bytes of one tenant. Every method may be called from any thread.
///
/// # Errors
/// Every method returns the errors of [`crate::model::error::Error`] that the machine causes; none of
/// them means that part of a call took effect, except [`crate::model::error::Error::Poisoned`] and
/// [`crate::model::error::Error::Io`] out of [`Self::append`]: then the block may or may not be stored.
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
    fn append(&self, blocks: Vec<NewBlock>) -> Result<()>;

    /// What a reader needs that has applied everything up to position `after` and holds the
    /// manifest of `generation`.
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

    /// Counters since the store was made.
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

    /// Begins a segment. Nobody sees it before a manifest names it.
    ///
    /// # Errors
    /// See [`Store`].
    fn create_segment(&self, id: &SegmentId) -> Result<Box<dyn NewSegment>>;

    /// `length` bytes of a segment from `offset` on.
    ///
    /// # Errors
    /// See [`Store`]; [`crate::model::error::Error::Stale`] where the segment is gone,
    /// [`crate::model::error::Error::Corrupt`] where it ends before.
    fn read_segment(&self, id: &SegmentId, offset: u64, length: usize) -> Result<Vec<u8>>;

    /// Every segment there is, named by a manifest or not.
    ///
    /// # Errors
    /// See [`Store`].
    fn segments(&self) -> Result<Vec<SegmentId>>;

    /// Removes a segment that no manifest names any more.
    ///
    /// # Errors
    /// See [`Store`].
    fn remove_segment(&self, id: &SegmentId) -> Result<()>;

    /// Replaces the manifest of `generation` by the next and, in the same commit, removes the log
    /// up to position `compacted`. False, and nothing is changed, where it is another by now.
    ///
    /// # Errors
    /// See [`Store`]; after [`crate::model::error::Error::Io`] it may have been replaced.
    fn replace_manifest(&self, generation: u64, manifest: &[u8], compacted: u64) -> Result<bool>;

    /// Sets how many seconds rows are kept, 0 for ever.
    ///
    /// # Errors
    /// See [`Store`].
    fn set_retention(&self, seconds: u64) -> Result<()>;

    /// Bytes that the store occupies on disk, its own overhead included.
    ///
    /// # Errors
    /// See [`Store`].
    fn stored_bytes(&self) -> Result<u64>;

    /// Ends the work of this handle: every later call fails with [`crate::model::error::Error::Closed`],
    /// also where a longer piece of work that is under way makes it.
    fn close(&self);

    /// Whether [`Self::close`] was called, for work that needs nothing of the store.
    ///
    /// # Errors
    /// [`crate::model::error::Error::Closed`].
    fn check_open(&self) -> Result<()>;
}

/// Bytes that one call of [`Store::log_after`] returns at most, unless a single block is larger:
/// bounds memory and the time a read transaction stays open.
const READ_BYTES_MAX: usize = 4 << 20;
