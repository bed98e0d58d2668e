//! State while a message is parsed.

use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::key_set::KeySet;
use crate::wire::template::Templates;
use crate::wire::template::protobuf::MapEntry;
use crate::wire::value::FieldCell;

/// First byte of every raw key of a series in protobuf.
pub(super) const RAW_KEY_FORMAT: u8 = b'p';

/// State of a message that is being read. `'a` is the message, `'c` the caller's context.
pub(super) struct ProtobufParser<'a, 'c> {
    pub(super) batch: BatchBuilder<'c>,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<FieldCell<'a>>,
    pub(super) cells_table: Option<u32>,
    pub(super) fields: FieldsState,
    /// Keys of `cells`. Filled when a key may have come before.
    pub(super) keys: KeySet<'a>,
    pub(super) templates: Templates<'a, MapEntry>,
    /// If true, records are kept. If false, they are only checked.
    pub(super) keeps: bool,
    /// Number of records so far.
    pub(super) received: usize,
    /// The field for which the first faulty record refuses the call.
    pub(super) fault: Option<&'static str>,
}

/// State of the fields of one record.
#[derive(Default)]
pub(super) struct FieldsState {
    /// The column after the previous column: senders repeat their keys in the same order.
    pub(super) column_next: u32,
    /// If true, a key may have come before. While columns ascend, no key can have come before.
    pub(super) unordered: bool,
    /// If true, `ProtobufParser::keys` holds the keys of `ProtobufParser::cells`.
    pub(super) keys_known: bool,
    /// If true, some value was not acceptable when it was read.
    pub(super) suspect: bool,
}

impl<'c> ProtobufParser<'_, 'c> {
    pub(super) fn new(context: ParseContext<'c>) -> Self {
        Self {
            batch: BatchBuilder::new(RAW_KEY_FORMAT, context),
            cells: Vec::new(),
            cells_table: None,
            fields: FieldsState::default(),
            keys: KeySet::default(),
            templates: Templates::default(),
            keeps: true,
            received: 0,
            fault: None,
        }
    }

    /// Returns true if the call is not refused so far, so that records must be kept.
    pub(super) const fn is_sound(&self) -> bool {
        self.fault.is_none() && self.received < self.batch.limits.batch_records_max
    }
}
