//! A stored segment: its index, its blocks and their statistics.

use super::index::{self, BlockEntry};
use super::layout::{
    CORRUPT, HEAD_LEN, INDEX_PART, SegmentPart, TAIL_LEN, footer_checksum, slot_of,
};
use crate::codec::decode_block;
use crate::model::batch::Block;
use crate::model::error::{Error, Result};
use crate::storage::seal::{KeySlot, Sealer, SegmentSealer};
use crate::storage::store::{SegmentId, Store};

/// A segment that was sealed with a key that its plane does not have.
const UNKNOWN_KEY: Error =
    Error::Corrupt { what: "a segment under a key that is not in the key file" };

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
    /// Returns [`crate::model::error::Error::Stale`] if the segment was removed,
    /// [`crate::model::error::Error::Corrupt`] if its file is damaged, and
    /// [`crate::model::error::Error::Io`] if the file cannot be read.
    pub fn open(store: &dyn Store, sealer: &Sealer, id: &SegmentId, bytes: u64) -> Result<Self> {
        let tail_at = bytes.checked_sub(TAIL_LEN as u64).ok_or(CORRUPT)?;
        let tail = store.read_segment(id, tail_at, TAIL_LEN)?;
        let (length, checksum) = tail.split_first_chunk::<4>().ok_or(CORRUPT)?;
        let index_len = u32::from_le_bytes(*length);
        let index_at = tail_at.checked_sub(u64::from(index_len)).ok_or(CORRUPT)?;
        let head = store.read_segment(id, 0, HEAD_LEN)?;
        let index_len = usize::try_from(index_len).map_err(|_| CORRUPT)?;
        let index = store.read_segment(id, index_at, index_len)?;
        if checksum != footer_checksum(&head, &index) {
            return Err(CORRUPT);
        }
        let slot = slot_of(&head, id).ok_or(CORRUPT)?;
        let sealer = sealer.segment_of(slot, id).ok_or(UNKNOWN_KEY)?;
        let blocks = index::decode(&sealer.open(INDEX_PART, index)?, index_at)?;
        Ok(Self { id: *id, sealer, blocks })
    }

    /// Returns the slot of the data key that sealed the segment `id`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open`].
    pub fn slot(store: &dyn Store, id: &SegmentId) -> Result<KeySlot> {
        slot_of(&store.read_segment(id, 0, HEAD_LEN)?, id).ok_or(CORRUPT)
    }

    /// Returns the entries of the blocks, in the order of their rows.
    #[must_use]
    pub fn blocks(&self) -> &[BlockEntry] {
        &self.blocks
    }

    /// Reads a part and opens its seal.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open`].
    ///
    /// # Panics
    /// If the segment has no such part.
    pub fn read(&self, store: &dyn Store, part: SegmentPart) -> Result<Vec<u8>> {
        let (offset, length) = match part {
            SegmentPart::Block(at) => (self.blocks[at].offset, self.blocks[at].sealed_len),
            SegmentPart::Statistics(at) => {
                let block = &self.blocks[at];
                (block.offset + block.sealed_len as u64, block.statistics_len)
            }
        };
        self.sealer.open(part.number(), store.read_segment(&self.id, offset, length)?)
    }

    /// Decodes a block, which has one table.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open`].
    ///
    /// # Panics
    /// If the segment has no such block.
    pub fn block(&self, store: &dyn Store, at: usize) -> Result<Block> {
        let block = decode_block(&self.read(store, SegmentPart::Block(at))?)?;
        match &*block.tables {
            [table] if table.row_count() == self.blocks[at].rows => Ok(block),
            _ => Err(CORRUPT),
        }
    }
}
