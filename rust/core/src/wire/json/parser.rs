//! State while a JSON document is parsed.

use crate::model::batch::FieldType;
use crate::model::time::TimeReader;
use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::faults::Faults;
use crate::wire::key_set::KeySet;
use crate::wire::template::Templates;
use crate::wire::value::FieldCell;

/// First byte of every raw key of a series in JSON, and in lines of JSON. Tags in lines contain no
/// line feed.
const RAW_KEY_FORMAT: u8 = b'j';
const LINES_RAW_KEY_FORMAT: u8 = b'n';

/// Depth of the values of a record's keys: inside the record and the array.
pub(super) const RECORD_DEPTH: usize = 2;

/// The text around the records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentLayout {
    /// The records are elements of an array.
    Array,
    /// Each record is a line.
    Lines,
}

/// State of a document that is being read. `'a` is the document, `'c` the caller's context.
pub(super) struct JsonParser<'a, 'c> {
    pub(super) text: &'a str,
    pub(super) layout: DocumentLayout,
    pub(super) times: TimeReader,
    pub(super) batch: BatchBuilder<'c>,
    /// Fields of the current record, and the table that their columns refer to.
    pub(super) cells: Vec<FieldCell<'a>>,
    pub(super) cells_table: Option<u32>,
    /// Keys of the object `fields` or `tags` that is being read.
    pub(super) keys: KeySet<'a>,
    /// If true, `keys` holds the keys of `cells`.
    pub(super) keys_of_cells: bool,
    /// Unknown keys of the current record.
    pub(super) other_keys: KeySet<'a>,
    pub(super) templates: Templates<'a, FieldType>,
    pub(super) faults: Faults,
}

impl<'a, 'c> JsonParser<'a, 'c> {
    pub(super) fn new(
        (text, layout): (&'a str, DocumentLayout),
        context: ParseContext<'c>,
    ) -> Self {
        let (format, faults) = match layout {
            DocumentLayout::Array => (RAW_KEY_FORMAT, Faults::default()),
            DocumentLayout::Lines => (LINES_RAW_KEY_FORMAT, Faults::of_import()),
        };
        Self {
            text,
            layout,
            times: TimeReader::default(),
            batch: BatchBuilder::new(format, context),
            cells: Vec::new(),
            cells_table: None,
            keys: KeySet::default(),
            keys_of_cells: false,
            other_keys: KeySet::default(),
            templates: Templates::default(),
            faults,
        }
    }

    /// Returns true if the batch is not refused so far, so that records must be kept.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.faults.refuse_nothing()
    }
}
