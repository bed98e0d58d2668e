//! Head, footer and part numbers of a segment's file (`docs/format.md`, "Segment").

use crate::model::error::Error;
use crate::storage::seal::KeySlot;
use crate::storage::store::SegmentId;

const MAGIC: &[u8; 8] = b"fleetseg";
/// Version of a segment that the data key in slot 0 sealed. The key in slot 1 has the version after
/// it.
const FIRST_VERSION: u8 = 1;
pub(super) const HEAD_LEN: usize = 8 + 1 + 16;
/// Bytes of the length and the checksum of the index.
pub(super) const TAIL_LEN: usize = 4 + 4;
pub(super) const INDEX_PART: u64 = 0;

pub(super) const CORRUPT: Error = Error::Corrupt { what: "a segment" };

/// A sealed part of a segment, except its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentPart {
    /// The block at this position of the index.
    Block(usize),
    /// The statistics of the block at this position of the index.
    Statistics(usize),
}

impl SegmentPart {
    /// Returns the number under which the part is sealed.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Block(at) => 2 * at as u64 + 1,
            Self::Statistics(at) => 2 * at as u64 + 2,
        }
    }
}

pub(super) fn head_of(id: &SegmentId, slot: KeySlot) -> Vec<u8> {
    [MAGIC.as_slice(), &[FIRST_VERSION + slot], id].concat()
}

/// Returns the slot of the data key that sealed the segment with this head.
pub(super) fn slot_of(head: &[u8], id: &SegmentId) -> Option<KeySlot> {
    let slot = head.get(MAGIC.len())?.checked_sub(FIRST_VERSION).filter(|slot| *slot < u8::MAX)?;
    (head == head_of(id, slot)).then_some(slot)
}

/// Returns the checksum of the head, the sealed index and the length of the index.
pub(super) fn footer_checksum(head: &[u8], index: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(index);
    hasher.update(&index_len(index));
    hasher.finalize().to_le_bytes()
}

pub(super) fn index_len(index: &[u8]) -> [u8; 4] {
    u32::try_from(index.len()).expect("an index is far below 4 GiB").to_le_bytes()
}
