//! State while lines are parsed.

use std::borrow::Cow;

use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::faults::Faults;
use crate::wire::key_set::KeySet;
use crate::wire::mapping::{Adapter, Rule};
use crate::wire::precision::Precision;
use crate::wire::template::Templates;
use crate::wire::template::line::LineValueKind;
use crate::wire::tokens::line::Backslashes;
use crate::wire::value::FieldCell;

/// First byte of every raw key of a series in line protocol: plain, and with mapped names by
/// version.
const RAW_KEY_FORMAT: u8 = b'l';
const ADAPTED_RAW_KEY_FORMAT: u8 = b'L';
const APART_RAW_KEY_FORMAT: u8 = b'M';

/// The rest of a line is not line protocol.
pub(super) struct BrokenLine;

/// The parts of a record before and after its fields.
pub(super) struct LineParts<'a, 'c> {
    /// Measurement as it is stored.
    pub(super) measurement: Cow<'a, str>,
    /// Name of the measurement in raw keys, and its rule, if names are mapped.
    pub(super) mapped: Option<(Cow<'c, str>, &'c Rule)>,
    /// The bytes of its tags, from the comma before them to the space after them.
    pub(super) tags: &'a str,
    /// `None` if the time is not valid.
    pub(super) time_ns: Option<i64>,
}

impl LineParts<'_, '_> {
    /// Returns the name of the measurement in raw keys.
    pub(super) fn key(&self) -> &str {
        self.mapped.as_ref().map_or(&self.measurement, |(key, _)| key)
    }
}

/// State of a body that is being read. `'a` is the body, `'c` the caller's context.
pub(super) struct LineParser<'a, 'c> {
    pub(super) text: &'a str,
    pub(super) precision: Precision,
    pub(super) backslashes: Backslashes,
    /// `Some` if names are mapped and a fault rejects only its record.
    pub(super) adapter: Option<Adapter<'c>>,
    /// Time of lines without a time.
    pub(super) default_ns: i64,
    pub(super) batch: BatchBuilder<'c>,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<FieldCell<'a>>,
    pub(super) cells_table: Option<u32>,
    /// Keys of the current fields or tags. Filled when a key may have come before.
    pub(super) keys: KeySet<'a>,
    pub(super) templates: Templates<'a, LineValueKind>,
    pub(super) faults: Faults,
    /// Number of records so far, and of ends of lines.
    pub(super) received: usize,
    pub(super) line_count: usize,
    /// If true, a record had a text, which may contain line feeds.
    pub(super) has_texts: bool,
    /// Start of the first record with a text that does not end.
    pub(super) open_at: Option<usize>,
}

impl<'a, 'c> LineParser<'a, 'c> {
    pub(super) fn new(text: &'a str, precision: Precision, context: ParseContext<'c>) -> Self {
        let (unit_ns, ingest_ns) = (precision.unit_ns(), context.ingest_ns);
        Self {
            text,
            precision,
            backslashes: Backslashes::Paired,
            adapter: None,
            default_ns: ingest_ns.saturating_sub(ingest_ns.rem_euclid(unit_ns)),
            batch: BatchBuilder::new(RAW_KEY_FORMAT, context),
            cells: Vec::new(),
            cells_table: None,
            keys: KeySet::default(),
            templates: Templates::default(),
            faults: Faults::default(),
            received: 0,
            line_count: 0,
            has_texts: false,
            open_at: None,
        }
    }

    /// Maps names, and lets a fault reject only its record.
    pub(super) fn adapted(mut self, adapter: Adapter<'c>, backslashes: Backslashes) -> Self {
        self.adapter = Some(adapter);
        self.backslashes = backslashes;
        self.batch.series.set_format(match backslashes {
            Backslashes::Apart => APART_RAW_KEY_FORMAT,
            Backslashes::Paired => ADAPTED_RAW_KEY_FORMAT,
        });
        self
    }

    /// Returns true if the batch is not refused so far, so that records must be kept.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.faults.refuse_nothing() && self.received < self.batch.limits.batch_records_max
    }
}
