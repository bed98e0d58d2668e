//! The head of a store, which vouches for all records together.

use crate::model::error::Result;
use crate::storage::seal::random_plane_id;

/// State of the whole store. Every change of a record changes the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordsHead {
    /// Random bytes that tell the store from other stores under the same master key.
    pub(super) store: [u8; 16],
    /// Number of changes of the counted spaces.
    pub(super) revision: u64,
    /// Exclusive or of the shares of all records: a set hash as in Clarke et al., "Incremental
    /// Multiset Hash Functions", 2003. Computing a share takes the key.
    pub(super) sum: [u8; 16],
}

impl RecordsHead {
    /// Makes the head of a new store without records.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Io`] if the system has no random bytes.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { store: random_plane_id()?, revision: 0, sum: [0; 16] })
    }

    /// Adds a record with this share to the sum, or removes it if the sum has it.
    pub(super) fn toggle(&mut self, share: [u8; 16]) {
        for (byte, other) in self.sum.iter_mut().zip(share) {
            *byte ^= other;
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        [self.store.as_slice(), &self.revision.to_le_bytes(), &self.sum].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (store, rest) = bytes.split_first_chunk()?;
        let (revision, sum) = rest.split_first_chunk()?;
        let sum = sum.try_into().ok()?;
        Some(Self { store: *store, revision: u64::from_le_bytes(*revision), sum })
    }
}
