//! Segments: immutable files of rows sorted by entity and time (`docs/format.md`, "Segment").
//!
//! [`SegmentWriter`] makes one out of sorted tables, [`merge`] one out of several, [`Segment`]
//! finds the blocks that a read needs.

mod cut;
mod fill;
mod index;
mod representatives;

mod rows;

mod gather;

pub mod statistics;

mod writer;

mod merge;

#[cfg(test)]
mod tests;

pub use merge::merge;
pub use representatives::Representatives;
pub use rows::{Span, newest, sorted, split_by_day};
pub use writer::{SegmentWriter, Written};

use crate::codec::decode_block;
use crate::model::batch::Block;
use crate::model::error::{Error, Result};
use crate::model::names::SeriesId;
use crate::storage::seal::{Sealer, SegmentSealer};
use crate::storage::store::{SegmentId, Store};

const MAGIC: &[u8; 8] = b"fleetseg";
const VERSION: u8 = 1;
const HEAD_LEN: usize = 8 + 1 + 16;
/// Length and checksum of the index.
const TAIL_LEN: usize = 4 + 4;
const INDEX_PART: u64 = 0;

const CORRUPT: Error = Error::Corrupt { what: "a segment" };

/// Nanoseconds of a day, the span of a segment.
pub const DAY_NS: i64 = 86_400_000_000_000;
/// Nanoseconds of an hour, the span of a row of statistics.
pub const HOUR_NS: i64 = 3_600_000_000_000;

/// The day that an instant lies in, since 1970-01-01.
#[must_use]
pub const fn day_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(DAY_NS)
}

/// The beginning of the hour that an instant lies in, or the earliest instant there is.
#[must_use]
pub const fn hour_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(HOUR_NS).saturating_mul(HOUR_NS)
}

/// What the index of a segment says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    offset: u64,
    sealed_len: usize,
    statistics_len: usize,
    /// Number of rows.
    pub rows: usize,
    /// Representative series and time of the first row.
    pub first: (SeriesId, i64),
    /// Representative series and time of the last row.
    pub last: (SeriesId, i64),
    /// Smallest time.
    pub min_ns: i64,
    /// Greatest time.
    pub max_ns: i64,
}

impl BlockEntry {
    /// Whether the block has statistics.
    #[must_use]
    pub const fn has_statistics(&self) -> bool {
        self.statistics_len > 0
    }

    /// Whether a row may lie in these times.
    #[must_use]
    pub const fn overlaps(&self, times_ns: &std::ops::Range<i64>) -> bool {
        self.max_ns >= times_ns.start && self.min_ns < times_ns.end
    }
}

/// A sealed part of a segment other than its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The block at this place of the index.
    Block(usize),
    /// Its statistics.
    Statistics(usize),
}

impl Part {
    const fn number(self) -> u64 {
        match self {
            Self::Block(at) => 2 * at as u64 + 1,
            Self::Statistics(at) => 2 * at as u64 + 2,
        }
    }
}

/// A segment whose index was read.
pub struct Segment {
    id: SegmentId,
    sealer: SegmentSealer,
    blocks: Vec<BlockEntry>,
}

impl Segment {
    /// Reads the index of the segment `id`, whose file has `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Stale`] where it is gone, [`Error::Corrupt`], [`Error::Io`].
    pub fn open(store: &dyn Store, sealer: &Sealer, id: &SegmentId, bytes: u64) -> Result<Self> {
        let tail_at = bytes.checked_sub(TAIL_LEN as u64).ok_or(CORRUPT)?;
        let tail = store.read_segment(id, tail_at, TAIL_LEN)?;
        let (length, checksum) = tail.split_first_chunk::<4>().ok_or(CORRUPT)?;
        let index_len = u32::from_le_bytes(*length);
        let index_at = tail_at.checked_sub(u64::from(index_len)).ok_or(CORRUPT)?;
        let head = store.read_segment(id, 0, HEAD_LEN)?;
        let index_len = usize::try_from(index_len).map_err(|_| CORRUPT)?;
        let index = store.read_segment(id, index_at, index_len)?;
        if checksum != footer_checksum(&head, &index) || head != head_of(id) {
            return Err(CORRUPT);
        }
        let sealer = sealer.segment(id);
        let blocks = index::decode(&sealer.open(INDEX_PART, index)?, index_at)?;
        Ok(Self { id: *id, sealer, blocks })
    }

    /// The blocks, in the order of their rows.
    #[must_use]
    pub fn blocks(&self) -> &[BlockEntry] {
        &self.blocks
    }

    /// Opens a part.
    ///
    /// # Errors
    /// As [`Self::open`].
    ///
    /// # Panics
    /// If there is no such part.
    pub fn read(&self, store: &dyn Store, part: Part) -> Result<Vec<u8>> {
        let (offset, length) = match part {
            Part::Block(at) => (self.blocks[at].offset, self.blocks[at].sealed_len),
            Part::Statistics(at) => {
                let block = &self.blocks[at];
                (block.offset + block.sealed_len as u64, block.statistics_len)
            }
        };
        self.sealer.open(part.number(), store.read_segment(&self.id, offset, length)?)
    }

    /// Decodes a block, which has one table.
    ///
    /// # Errors
    /// As [`Self::open`].
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block(&self, store: &dyn Store, at: usize) -> Result<Block> {
        let block = decode_block(&self.read(store, Part::Block(at))?)?;
        match &*block.tables {
            [table] if table.row_count() == self.blocks[at].rows => Ok(block),
            _ => Err(CORRUPT),
        }
    }
}

fn head_of(id: &SegmentId) -> Vec<u8> {
    [MAGIC.as_slice(), &[VERSION], id].concat()
}

/// Over head, sealed index and its length.
fn footer_checksum(head: &[u8], index: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(index);
    hasher.update(&index_len(index));
    hasher.finalize().to_le_bytes()
}

fn index_len(index: &[u8]) -> [u8; 4] {
    u32::try_from(index.len()).expect("an index is far below 4 GiB").to_le_bytes()
}
