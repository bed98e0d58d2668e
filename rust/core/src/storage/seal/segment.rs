//! Seals the parts of a segment.

use ring::aead::{Aad, LessSafeKey, Nonce};

use super::data_keys::KeySlot;
use super::random::PLANE_ID_LEN;
use super::secret::Secret;
use crate::model::error::{Error, Result};

/// Bytes of the id of a blob or a segment.
pub(super) const ID_LEN: usize = 16;
/// Bytes of the tag of AES-GCM.
pub(super) const TAG_LEN: usize = 16;

/// Seals and opens the numbered parts of one segment. No other segment has the same key.
pub struct SegmentSealer {
    pub(super) key: Secret<LessSafeKey>,
    pub(super) slot: KeySlot,
    /// Bytes that are authenticated together with the ciphertext: version, plane and segment.
    pub(super) context: [u8; 1 + PLANE_ID_LEN + ID_LEN],
}

impl SegmentSealer {
    /// Returns the slot of the data key.
    #[must_use]
    pub fn slot(&self) -> KeySlot {
        self.slot
    }

    /// Seals `plain` as the part `number`. A segment must have no other part with this number,
    /// because the nonce is made from it.
    ///
    /// # Panics
    ///
    /// If `plain` is longer than AES-GCM allows, 64 GiB.
    #[must_use]
    pub fn seal(&self, number: u64, mut plain: Vec<u8>) -> Vec<u8> {
        self.key
            .seal_in_place_append_tag(part_nonce(number), Aad::from(self.context), &mut plain)
            .expect("parts are shorter than 64 GiB");
        plain
    }

    /// Opens bytes that [`Self::seal`] made for the same part of the same segment.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if the bytes are anything else.
    pub fn open(&self, number: u64, mut sealed: Vec<u8>) -> Result<Vec<u8>> {
        let context = Aad::from(self.context);
        let opened = self.key.open_in_place(part_nonce(number), context, &mut sealed);
        let length = opened.map_err(|_| Error::Corrupt { what: "a part of a segment" })?.len();
        sealed.truncate(length);
        Ok(sealed)
    }
}

/// A key serves one segment, which is written once, so the number of the part makes the nonce
/// unique.
fn part_nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}
