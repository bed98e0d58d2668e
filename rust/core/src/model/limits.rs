//! All bounds of the engine: the unit of each, and what it protects.
//!
//! The first eleven are the defaults of settings (`docs/operations.md`); `rust/py` exports them to Python,
//! which takes them from here. The others are fixed.

/// Records of one batch over HTTP: bounds the work of one request and the rows of its block.
pub const BATCH_RECORDS_MAX: usize = 1_000;

/// Records of one gRPC call, which comes from a gateway that collects for a whole fleet.
pub const CALL_RECORDS_MAX: usize = 10_000;

/// Tags of one record, less those that the service stamps: bounds the name of a series.
pub const TAGS_MAX: usize = 64;

/// Fields of one record: bounds its cost in every structure that has a slot per field.
pub const FIELDS_MAX: usize = 4_096;

/// Distinct fields of a tenant: every process that serves the tenant holds their names in memory.
pub const TENANT_FIELDS_MAX: usize = 100_000;

/// Distinct series of a tenant, for the same reason.
pub const TENANT_SERIES_MAX: usize = 10_000_000;

/// Bytes of all names of a tenant as they are stored: names may be long, and the same processes hold
/// them.
pub const TENANT_NAMES_BYTES_MAX: usize = 1 << 30;

/// Points, i.e. rows over all entities, in the answer of one series read.
pub const POINTS_MAX: u64 = 10_000;

/// Values in the answer of one series read, times and nulls included: bounds an answer of wide rows.
pub const ANSWER_VALUES_MAX: u64 = 1_000_000;

/// Days that a series read reaches back from now.
pub const HISTORY_DAYS_MAX: u32 = 30;

/// Seconds that a series read without windows spans.
pub const RAW_SPAN_SECONDS_MAX: u32 = 3_600;

/// Bounds on one batch, and on what it may add to its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Records of the batch.
    pub batch_records_max: usize,
    /// Tags of one record.
    pub tags_max: usize,
    /// Fields of one record.
    pub fields_max: usize,
    /// Distinct fields of the tenant, those of the batch included.
    pub tenant_fields_max: usize,
    /// Distinct series of the tenant, those of the batch included.
    pub tenant_series_max: usize,
    /// Bytes of all names of the tenant, those of the batch included.
    pub tenant_names_bytes_max: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self {
            batch_records_max: BATCH_RECORDS_MAX,
            tags_max: TAGS_MAX,
            fields_max: FIELDS_MAX,
            tenant_fields_max: TENANT_FIELDS_MAX,
            tenant_series_max: TENANT_SERIES_MAX,
            tenant_names_bytes_max: TENANT_NAMES_BYTES_MAX,
        }
    }
}

/// Nesting of JSON values, the outer array counted: protects the stack.
pub const JSON_DEPTH_MAX: usize = 8;

/// Bytes of the tags of one series as they are stored, lengths included: bounds what each data point
/// of a message adds that shares the tags of a resource with many others.
pub const TAGS_BYTES_MAX: usize = 64 << 10;

/// Bytes of the names that a body may add for each of its own bytes, where it says a part of many names
/// once. A name takes up to eight times its bytes in memory, so a body takes 64 times its own.
pub const NAMES_PER_BODY_BYTE_MAX: usize = 8;

/// Bytes of such names that any body may add, however short: 8,000 series with tags of 1,000 bytes.
pub const BODY_NAMES_BYTES: usize = 8 << 20;

/// Characters of a name that the location of a fault repeats: an answer has up to [`FAULTS_MAX`] of them.
pub const FAULT_NAME_CHARS_MAX: usize = 64;

/// Faults reported for one batch: bounds the answer, not the checking.
pub const FAULTS_MAX: usize = 100;

/// Records of a text of an import that are said to be faulty at once, each by its first fault: bounds
/// what their list takes, and how often a text without a sound record is read again.
pub const IMPORT_FAULTS_MAX: usize = 10_000;

/// Rows a stored block may claim: bounds what a decoder allocates for hostile bytes.
pub const BLOCK_ROWS_MAX: usize = 1 << 20;
const _: () = assert!(BATCH_RECORDS_MAX <= BLOCK_ROWS_MAX && CALL_RECORDS_MAX <= BLOCK_ROWS_MAX);

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

/// Bytes of single hours out of blocks of segments, decoded, that one plane keeps in one process: an
/// hour of one entity with five fields every ten seconds takes 17 kB.
pub const SEGMENT_HOURS_BYTES_MAX: usize = 16 << 20;

/// Bytes of remembered raw keys ([`crate::model::raw_keys`]) above which the cache of one plane starts
/// over: protects memory against clients that write the same tags in ever new ways.
pub const RAW_KEY_BYTES_MAX: usize = 64 << 20;

/// Bytes of decoded blocks, parts, hours and indexes of segments and raw keys that all planes of a process
/// keep together: some more than one plane alone may have, and a quarter of what a process with 1,000
/// active planes is to take.
pub const CACHES_BYTES_MAX: usize = 256 << 20;

/// Pieces of answers, of a mebibyte each, that a process keeps for the next one: those of the newest
/// samples of 100,000 entities.
pub const SPARE_PIECES_MAX: usize = 40;

/// Columns for fields of a table that a scan becomes: as many as a record may have fields, because
/// each batch of the table has all columns.
pub const SCAN_COLUMNS_MAX: usize = FIELDS_MAX;

/// Ids of entities, or values of a tag, that a description of a store lists.
pub const DESCRIBED_MAX: usize = 100;

/// Rows of a batch of a scan.
pub const SCAN_BATCH_ROWS_MAX: usize = 65_536;

/// Bytes of the values and tags of a batch of a scan, unless a single row has more.
pub const SCAN_BATCH_BYTES: usize = 8 << 20;

/// Bytes of the log from which on it is worth compacting.
pub const LOG_BYTES_DUE: u64 = 4 << 20;

/// Deletes of one tenant whose rows are not yet removed: each read looks at all of them.
pub const TOMBSTONES_MAX: usize = 128;

/// Bytes of the names of measurements and entities that one delete may give: the manifest, which is
/// replaced whole, holds them until the rows are removed.
pub const TOMBSTONE_NAMES_BYTES_MAX: usize = 64 << 10;

/// Values of the log that a scan sorts in memory at a time, unless a single block has more.
pub const SCAN_ROUND_VALUES_MAX: usize = 1 << 20;

/// Values that one round of compaction decodes, unless a single block has more: bounds its memory.
pub const ROUND_VALUES_MAX: usize = 1 << 22;
