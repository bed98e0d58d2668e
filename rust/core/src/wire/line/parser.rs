//! State of one parse of lines.

use std::borrow::Cow;

use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::faults::Faults;
use crate::wire::key_set::KeySet;
use crate::wire::mapping::{Adapter, Rule};
use crate::wire::precision::Precision;
use crate::wire::template::Templates;
use crate::wire::template::line::Kind;
use crate::wire::tokens::line::Backslashes;
use crate::wire::value::Cell;

/// First byte of every raw key of a series in line protocol, and where names are mapped.
const RAW_KEY_FORMAT: u8 = b'l';
const ADAPTED_RAW_KEY_FORMAT: u8 = b'L';
const APART_RAW_KEY_FORMAT: u8 = b'M';

/// The rest of a line is no line protocol.
pub(super) struct Broken;

/// The parts of a record that come before its fields and after them.
pub(super) struct Parts<'a, 'c> {
    /// As it is stored.
    pub(super) measurement: Cow<'a, str>,
    /// Its name in raw keys, and its rule, where names are mapped.
    pub(super) mapped: Option<(Cow<'c, str>, &'c Rule)>,
    /// The bytes of its tags, from the comma before them to the space after them.
    pub(super) tags: &'a str,
    /// `None` where the time is none.
    pub(super) time_ns: Option<i64>,
}

impl Parts<'_, '_> {
    /// Name of the measurement in raw keys.
    pub(super) fn key(&self) -> &str {
        self.mapped.as_ref().map_or(&self.measurement, |(key, _)| key)
    }
}

/// State of a body that is being read; `'a` is the body, `'c` the caller's knowledge.
pub(super) struct Parser<'a, 'c> {
    pub(super) text: &'a str,
    pub(super) precision: Precision,
    pub(super) backslashes: Backslashes,
    /// `Some` where names are mapped and faults reject their records alone.
    pub(super) adapter: Option<Adapter<'c>>,
    /// Time of the lines that have none.
    pub(super) default_ns: i64,
    pub(super) batch: BatchBuilder<'c>,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<Cell<'a>>,
    pub(super) cells_table: Option<u32>,
    /// Keys of the fields or tags that are being read, once one may have come before.
    pub(super) keys: KeySet<'a>,
    pub(super) templates: Templates<'a, Kind>,
    pub(super) faults: Faults,
    /// Number of records so far, and of ends of lines.
    pub(super) received: usize,
    pub(super) line_count: usize,
    /// Tells whether a record had a text, which may hold ends of lines.
    pub(super) has_texts: bool,
    /// Start of the first record with a text that does not end.
    pub(super) open_at: Option<usize>,
}

impl<'a, 'c> Parser<'a, 'c> {
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

    /// Has names mapped and faults reject their records alone.
    pub(super) fn adapted(mut self, adapter: Adapter<'c>, backslashes: Backslashes) -> Self {
        self.adapter = Some(adapter);
        self.backslashes = backslashes;
        self.batch.series.set_format(match backslashes {
            Backslashes::Apart => APART_RAW_KEY_FORMAT,
            Backslashes::Paired => ADAPTED_RAW_KEY_FORMAT,
        });
        self
    }

    /// Tells whether nothing refuses the batch so far, so that records must be kept.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.faults.refuse_nothing() && self.received < self.batch.limits.batch_records_max
    }
}
