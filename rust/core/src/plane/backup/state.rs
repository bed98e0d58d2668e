//! The state file of a saved plane: its snapshot, and the hashes that the next backup continues.

use super::files::{DAMAGED, Hash};
use crate::model::error::Result;
use crate::storage::store::{FirstIds, StoreCounts, StoreSnapshot};

/// Magic and version.
const MAGIC: &[u8; 9] = b"fleetsav\x02";
const NUMBERS: usize = 10;

/// Content of the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackupState {
    pub(super) snapshot: StoreSnapshot,
    /// Hash of all pages of names, as a chain: each step hashes the hash so far and the next page.
    pub(super) names_hash: Hash,
    /// Hash of the last page of names, or zeros if there is no page.
    pub(super) last_page_hash: Hash,
    /// Hash of the last block of the log, or zeros if that block is compacted.
    pub(super) last_block_hash: Hash,
    /// Hash of all blocks of the log that are not compacted, as a chain: each step hashes the hash
    /// so far and the hash of the next block.
    pub(super) log_hash: Hash,
}

impl BackupState {
    /// Returns the state of a snapshot before its names and its log are read.
    pub(super) fn new(snapshot: StoreSnapshot) -> Self {
        let [names_hash, last_page_hash, last_block_hash, log_hash] = Default::default();
        Self { snapshot, names_hash, last_page_hash, last_block_hash, log_hash }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let StoreSnapshot { counts, next_ids, .. } = self.snapshot;
        let numbers: [u64; NUMBERS] = [
            self.snapshot.log_last,
            self.snapshot.names_last,
            counts.rows,
            counts.values,
            counts.rejected,
            counts.batches,
            counts.log_bytes,
            self.snapshot.compacted,
            self.snapshot.generation,
            self.snapshot.retention_seconds,
        ];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend([next_ids.series, next_ids.field].iter().flat_map(|id| id.to_le_bytes()));
        for hash in [&self.names_hash, &self.last_page_hash, &self.last_block_hash, &self.log_hash]
        {
            bytes.extend_from_slice(hash);
        }
        let length = u32::try_from(self.snapshot.cursors.len()).expect("cursors are few");
        bytes.extend(length.to_le_bytes());
        bytes.extend_from_slice(&self.snapshot.cursors);
        bytes.extend(self.snapshot.manifest.iter().flatten());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or(DAMAGED)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (numbers, rest) = rest.split_at_checked(8 * NUMBERS)?;
        let numbers: Vec<u64> =
            numbers.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let [log_last, names_last, rows, values, rejected, batches, log_bytes, compacted, ..] =
            *numbers
        else {
            return None;
        };
        let [.., generation, retention_seconds] = *numbers else { return None };
        let (series, rest) = rest.split_first_chunk()?;
        let (field, rest) = rest.split_first_chunk()?;
        let (names_hash, rest) = rest.split_first_chunk()?;
        let (last_page_hash, rest) = rest.split_first_chunk()?;
        let (last_block_hash, rest) = rest.split_first_chunk()?;
        let (log_hash, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (cursors, sealed) = rest.split_at_checked(length)?;
        let snapshot = StoreSnapshot {
            log_last,
            names_last,
            counts: StoreCounts { rows, values, rejected, batches, log_bytes },
            compacted,
            generation,
            retention_seconds,
            next_ids: FirstIds {
                series: u32::from_le_bytes(*series),
                field: u32::from_le_bytes(*field),
            },
            cursors: cursors.to_vec(),
            manifest: (!sealed.is_empty()).then(|| sealed.to_vec()),
        };
        Some(Self {
            snapshot,
            names_hash: *names_hash,
            last_page_hash: *last_page_hash,
            last_block_hash: *last_block_hash,
            log_hash: *log_hash,
        })
    }
}
