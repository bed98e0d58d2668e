//! Layout of the file.
//!
//! Header (80 bytes, little-endian): magic 8, boot 36 and 4 of zeros, then admitted instants,
//! failures, buckets and seed, 8 bytes each. The heads of all slots follow at 4096, then the rings
//! of all slots. The file is sparse: a slot takes disk space once a client has it.

use crate::clock::BOOT_BYTES;
use crate::ring::INSTANT_BYTES;
use crate::rules::LimiterRules;

/// Number of slots in a bucket. A client has a slot in the bucket that its key hashes to.
pub(crate) const WAYS: usize = 8;

/// Bytes of the head of a slot: key 16, locked until 8, claimed at 8. The size divides a page, so
/// that a head is written whole or not at all.
pub(crate) const HEAD_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"FCLIMIT1";
pub(crate) const HEADER_BYTES: usize = 80;

/// Offset of the heads. It is a multiple of the page size, so that no head lies on two pages.
pub(crate) const HEADS_OFFSET: u64 = 4_096;

/// Most bytes of all slots together. Bounds the file: about 195,000 clients at the default limits.
const SLOTS_BYTES_MAX: u64 = 64 << 20;

/// Least number of buckets, even if high limits make the slots exceed [`SLOTS_BYTES_MAX`].
const BUCKETS_MIN: u64 = 8;

/// Offsets of the parts of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLayout {
    /// Number of admitted requests remembered of a client.
    pub(crate) admitted_len: u64,
    /// Number of failures remembered of a client: one less than the number that locks it out.
    pub(crate) failed_len: u64,
    pub(crate) buckets: u64,
    /// Random seed of the hash. It keeps a client from choosing addresses that share a bucket.
    pub(crate) seed: u64,
}

impl FileLayout {
    pub(crate) fn new(rules: LimiterRules, seed: u64) -> Self {
        let admitted_len = u64::from(rules.requests_per_minute);
        let failed_len = u64::from(rules.lockout_failures.saturating_sub(1));
        let slot_bytes = HEAD_BYTES as u64 + (admitted_len + failed_len) * INSTANT_BYTES;
        let buckets = (SLOTS_BYTES_MAX / (slot_bytes * WAYS as u64)).max(BUCKETS_MIN);
        Self { admitted_len, failed_len, buckets, seed }
    }

    pub(crate) fn clients_max(&self) -> u64 {
        self.buckets * WAYS as u64
    }

    pub(crate) fn head_offset(slot: u64) -> u64 {
        HEADS_OFFSET + slot * HEAD_BYTES as u64
    }

    pub(crate) fn rings_offset(&self, slot: u64) -> u64 {
        let rings_bytes = (self.admitted_len + self.failed_len) * INSTANT_BYTES;
        Self::head_offset(self.clients_max()) + slot * rings_bytes
    }

    pub(crate) fn failed_offset(&self, slot: u64) -> u64 {
        self.rings_offset(slot) + self.admitted_len * INSTANT_BYTES
    }

    pub(crate) fn header(&self, boot: &[u8; BOOT_BYTES]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..8 + BOOT_BYTES].copy_from_slice(boot);
        let words = [self.admitted_len, self.failed_len, self.buckets, self.seed];
        for (field, word) in bytes[48..].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}
