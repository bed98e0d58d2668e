//! All bounds of the engine, each with its unit and its purpose.
//!
//! The first eleven bounds are the defaults of settings (`docs/operations.md`). `rust/py` exports
//! them to Python, which has no copy of its own. The other bounds are fixed.

/// Records of one batch over HTTP. Bounds the work of one request and the rows of its block.
pub const BATCH_RECORDS_MAX: usize = 1_000;

/// Records of one gRPC call. A gateway that collects for a whole fleet makes such calls.
pub const CALL_RECORDS_MAX: usize = 10_000;

/// Tags of one record, without the tags that the service adds. Bounds the name of a series.
pub const TAGS_MAX: usize = 64;

/// Fields of one record. Bounds the cost of a record in every structure with a slot per field.
pub const FIELDS_MAX: usize = 4_096;

/// Distinct fields of a tenant. Every process that serves the tenant holds their names in memory.
pub const TENANT_FIELDS_MAX: usize = 100_000;

/// Distinct series of a tenant. Every process that serves the tenant holds their names in memory.
pub const TENANT_SERIES_MAX: usize = 10_000_000;

/// Bytes of all names of a tenant as stored. Names may be long, and every process that serves the
/// tenant holds them in memory.
pub const TENANT_NAMES_BYTES_MAX: usize = 1 << 30;

/// Points, i.e. rows summed over all entities, in the answer of one series read.
///
/// Example: ten entities with 1,000 rows each reach the bound.
pub const POINTS_MAX: u64 = 10_000;

/// Values in the answer of one series read, with times and nulls. Bounds an answer with wide rows.
///
/// Example: 10,000 rows with 99 channels and the time reach the bound.
pub const ANSWER_VALUES_MAX: u64 = 1_000_000;

/// Days before now that a series read may begin.
pub const HISTORY_DAYS_MAX: u32 = 30;

/// Seconds that a series read without windows may span.
pub const RAW_SPAN_SECONDS_MAX: u32 = 3_600;

/// Bounds of one batch, and of the names that it may add to its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Maximum number of records in the batch.
    pub batch_records_max: usize,
    /// Maximum number of tags of a record.
    pub tags_max: usize,
    /// Maximum number of fields of a record.
    pub fields_max: usize,
    /// Maximum number of distinct fields of the tenant after the batch.
    pub tenant_fields_max: usize,
    /// Maximum number of distinct series of the tenant after the batch.
    pub tenant_series_max: usize,
    /// Maximum bytes of all names of the tenant after the batch.
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

/// Levels of nested JSON values, including the outer array. Protects the stack.
pub const JSON_DEPTH_MAX: usize = 8;

/// Bytes of the tags of one series as stored, with their lengths. A message may state the tags of a
/// resource once for many data points. Bounds the bytes that each of its data points adds.
pub const TAGS_BYTES_MAX: usize = 64 << 10;

/// Bytes of names that a body may add per byte of the body. A body may state a part of many names
/// once. A name takes up to eight times its bytes in memory, so a body takes up to 64 times its
/// bytes.
///
/// Example: a body of 2 MiB may add 16 MiB of names.
pub const NAMES_PER_BODY_BYTE_MAX: usize = 8;

/// Bytes of names that any body may add, however short it is.
///
/// Example: 8,000 series with tags of 1,000 bytes fit.
pub const BODY_NAMES_BYTES: usize = 8 << 20;

/// Characters of a name that the location of a fault repeats. An answer has up to [`FAULTS_MAX`]
/// faults.
pub const FAULT_NAME_CHARS_MAX: usize = 64;

/// Faults reported for one batch. Bounds the answer, not the checks.
pub const FAULTS_MAX: usize = 100;

/// Faulty records of an import's text that are reported at once, each with its first fault. Bounds
/// the memory of the list, and how often a text without a valid record is read again.
pub const IMPORT_FAULTS_MAX: usize = 10_000;

/// Rows that a stored block may claim. Bounds the memory that a decoder allocates for hostile
/// bytes.
pub const BLOCK_ROWS_MAX: usize = 1 << 20;
const _: () = assert!(BATCH_RECORDS_MAX <= BLOCK_ROWS_MAX && CALL_RECORDS_MAX <= BLOCK_ROWS_MAX);

/// Values that a stored block may claim in all its columns. Bounds the memory of a decoder, because
/// a constant column of a few bytes could claim any number of values. The bound is 128 MiB of
/// doubles.
pub const BLOCK_CELLS_MAX: usize = 1 << 24;

/// Bytes of text that a stored block may decode to. Bounds the memory of a decoder, because every
/// row could repeat one long string of the dictionary.
pub const BLOCK_TEXT_BYTES_MAX: usize = 1 << 26;

/// Bytes of decoded blocks, the newest of the log, that one plane keeps in one process. They hold
/// nearly every log that compaction leaves ([`LOG_BYTES_DUE`]): a decoded row with one value takes
/// 28 bytes, and at least two in the log.
///
/// Example: an hour of 1,000 entities with five fields every ten seconds takes 20 MB.
pub const RECENT_BYTES_MAX: usize = 64 << 20;

/// Bytes of segment indexes that one plane keeps in one process.
pub const SEGMENT_INDEX_BYTES_MAX: usize = 8 << 20;

/// Bytes of opened parts of segments that one plane keeps in one process.
///
/// Example: the bound holds the statistics of a month, or the last hours, of some hundred entities.
pub const SEGMENT_PARTS_BYTES_MAX: usize = 16 << 20;

/// Bytes of decoded single hours, out of blocks of segments, that one plane keeps in one process.
///
/// Example: an hour of one entity with five fields every ten seconds takes 17 kB.
pub const SEGMENT_HOURS_BYTES_MAX: usize = 16 << 20;

/// Bytes of raw keys ([`crate::model::raw_keys`]) beyond which the cache of one plane starts over.
/// Protects memory against clients that write the same tags in ever new ways.
pub const RAW_KEY_BYTES_MAX: usize = 64 << 20;

/// Bytes of indexes of labels that one plane keeps in one process, and four times the bytes of one
/// index.
///
/// Example: an index takes 4 MB if a million series have the label.
pub const LABEL_POSTINGS_BYTES_MAX: usize = 16 << 20;

/// Bytes of decoded blocks, parts, hours, indexes and raw keys that all planes of a
/// process keep together. The bound is somewhat more than one plane alone may keep. It is a quarter
/// of the memory that a process with 1,000 active planes should take.
pub const CACHES_BYTES_MAX: usize = 256 << 20;

/// Pieces of answers, of a mebibyte each, that a process keeps for reuse. They hold the newest
/// samples of 100,000 entities.
pub const SPARE_PIECES_MAX: usize = 40;

/// Field columns of the table that a scan returns. The bound is the number of fields that a record
/// may have, because each batch of the table has all columns.
pub const SCAN_COLUMNS_MAX: usize = FIELDS_MAX;

/// Entity ids, or values of a tag, that a description of a store lists.
pub const DESCRIBED_MAX: usize = 100;

/// Rows in a batch of a scan.
pub const SCAN_BATCH_ROWS_MAX: usize = 65_536;

/// Bytes of values and tags in a batch of a scan, unless a single row has more.
pub const SCAN_BATCH_BYTES: usize = 8 << 20;

/// Bytes of the log from which compaction pays.
pub const LOG_BYTES_DUE: u64 = 4 << 20;

/// Deletes of one tenant whose rows are not removed yet. Each read looks at all of them.
pub const TOMBSTONES_MAX: usize = 128;

/// Bytes of names of measurements and entities in one delete. The manifest holds the names until
/// the rows are removed, and each change rewrites the whole manifest.
pub const TOMBSTONE_NAMES_BYTES_MAX: usize = 64 << 10;

/// Values of the log that a scan sorts in memory at a time, unless a single block has more.
pub const SCAN_ROUND_VALUES_MAX: usize = 1 << 20;

/// Values that one round of compaction decodes, unless a single block has more. Bounds its memory.
pub const ROUND_VALUES_MAX: usize = 1 << 22;
