//! Every bound of the write path in one place: its unit, and what it protects.
//!
//! The numbers are defaults; a deployment may change them (`docs/operations.md`).

/// Bounds on one batch, and on what it may add to its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Records in one batch: 1,000 over HTTP, 10,000 over gRPC.
    pub batch_records_max: usize,
    /// Tags on one record: 64.
    pub tags_max: usize,
    /// Fields of one record: bounds what one record costs in every structure that
    /// has a place per field.
    pub fields_max: usize,
    /// Distinct fields of a tenant: every process that serves the tenant has their
    /// names in memory.
    pub tenant_fields_max: usize,
    /// Distinct series of a tenant, for the same reason.
    pub tenant_series_max: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self {
            batch_records_max: 1_000,
            tags_max: 64,
            fields_max: 4_096,
            tenant_fields_max: 100_000,
            tenant_series_max: 10_000_000,
        }
    }
}

/// Bytes of a name that count as one name against the bounds of a tenant (N2); a longer one counts as
/// several. So the bounds are also some on memory, in which every name lies; 64 tags fit one.
pub const NAME_BYTES: usize = 4 << 10;

/// Nesting of JSON values, the outer array counted: protects the stack.
pub const JSON_DEPTH_MAX: usize = 8;

/// Faults reported for one batch: bounds the answer, not the checking.
pub const FAULTS_MAX: usize = 100;

/// Rows a stored block may claim: bounds what a decoder allocates for hostile bytes.
pub const BLOCK_ROWS_MAX: usize = 1 << 20;

/// Values a stored block may claim in all its columns: bounds the same where constant columns,
/// which take a few bytes each, could claim any number (128 MiB of doubles).
pub const BLOCK_CELLS_MAX: usize = 1 << 24;

/// Bytes of text a stored block may decode to: bounds the same where a dictionary holds one long
/// string that every row repeats.
pub const BLOCK_TEXT_BYTES_MAX: usize = 1 << 26;

/// Bytes of decoded blocks, the newest of the log, that one plane keeps in one process: an hour of
/// 1,000 entities with five fields every ten seconds takes 20 MB.
pub const RECENT_BYTES_MAX: usize = 32 << 20;

/// Bytes of indexes of segments that one plane keeps in one process.
pub const SEGMENT_INDEX_BYTES_MAX: usize = 8 << 20;

/// Bytes of opened parts of segments that one plane keeps in one process: the statistics of a month
/// of some hundred entities, or the last hours of as many.
pub const SEGMENT_PARTS_BYTES_MAX: usize = 16 << 20;

/// Bytes of decoded blocks, parts and indexes of segments and spellings that all planes of a process
/// keep together: some more than one plane alone may have, and a quarter of what a process with 1,000
/// active planes is to take.
pub const CACHES_BYTES_MAX: usize = 256 << 20;

/// Bytes of the log from which on it is worth compacting.
pub const LOG_BYTES_DUE: u64 = 4 << 20;

/// Values that one round of compaction decodes, unless a single block has more: bounds its memory.
pub const ROUND_VALUES_MAX: usize = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_batch_fits_one_block() {
        assert!(WriteLimits::default().batch_records_max <= BLOCK_ROWS_MAX);
    }
}
