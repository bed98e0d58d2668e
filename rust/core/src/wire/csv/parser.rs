//! State while rows are parsed.

use super::columns::CsvColumns;
use super::keys::CsvKeys;
use super::split::RawCell;
use super::steps::{CellStep, steps};
use crate::model::time::TimeReader;
use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::columnar::RAW_KEY_FORMAT;
use crate::wire::columns::UNKNOWN_COLUMN;
use crate::wire::faults::Faults;
use crate::wire::value::{FieldCell, RecordValues, RowColumns};

/// Fields of the cells of a row, as far as it is read.
#[derive(Default)]
pub(super) struct QuickRow<'a> {
    /// Indices of the cells of `values`.
    pub(super) cells: RowColumns,
    pub(super) columns: RowColumns,
    pub(super) values: RecordValues<'a>,
    /// Bytes of the measurement and the tags, if their cells are not neighbours.
    pub(super) key: Vec<u8>,
}

impl QuickRow<'_> {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.values.clear();
        self.key.clear();
    }
}

/// State of a text that is being read. `'a` is the text, `'c` the caller's context.
pub(super) struct CsvParser<'a, 'c> {
    pub(super) text: &'a str,
    pub(super) times: TimeReader,
    pub(super) batch: BatchBuilder<'c>,
    pub(super) header: &'c mut CsvColumns,
    /// `None` if rows cannot be read quickly.
    pub(super) steps: Option<Vec<(CellStep, usize)>>,
    /// Number of steps that are keys.
    pub(super) key_count: usize,
    pub(super) keys: CsvKeys,
    /// By table and cell: the column of the cell, or [`UNKNOWN_COLUMN`].
    pub(super) columns_of: Vec<Vec<u32>>,
    pub(super) quick: QuickRow<'a>,
    /// Cells of the current row, and the fields among them.
    pub(super) raw: Vec<RawCell<'a>>,
    pub(super) cells: Vec<FieldCell<'a>>,
    pub(super) raw_tags: Vec<u8>,
    pub(super) faults: Faults,
}

impl<'a, 'c> CsvParser<'a, 'c> {
    pub(super) fn new(
        text: &'a str,
        header: &'c mut CsvColumns,
        context: ParseContext<'c>,
    ) -> Self {
        let mut parser = Self {
            text,
            times: TimeReader::default(),
            batch: BatchBuilder::new(RAW_KEY_FORMAT, context),
            header,
            steps: None,
            key_count: 0,
            keys: CsvKeys::default(),
            columns_of: Vec::new(),
            quick: QuickRow::default(),
            raw: Vec::new(),
            cells: Vec::new(),
            raw_tags: Vec::new(),
            faults: Faults::of_import(),
        };
        parser.plan();
        parser
    }

    /// Plans how rows are read quickly, if this is possible.
    pub(super) fn plan(&mut self) {
        let is_narrow = self.header.cells.len() <= self.batch.limits.fields_max;
        self.steps = steps(self.header).filter(|_| is_narrow);
        let is_key = |(step, _): &&(CellStep, usize)| matches!(step, CellStep::Key(_));
        self.key_count = self.steps.iter().flatten().filter(is_key).count();
    }

    /// Returns true if the batch is not refused so far, so that rows must be kept.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.faults.refuse_nothing()
    }

    /// Learns the columns of the cells in a table after the rules have added a row to it.
    pub(super) fn learn(&mut self, table: u32) {
        let at = table as usize;
        if self.columns_of.len() <= at {
            self.columns_of.resize(at + 1, Vec::new());
        }
        let columns = &self.batch.columns;
        let Some(of_table) = self.columns_of.get_mut(at) else { return };
        of_table.clear();
        of_table.extend(self.header.cells.iter().map(|cell| match &cell.field {
            Some(field) => match columns.find_column(table, &field.name) {
                column if columns.field_type(table, column) == field.field_type => column,
                _ => UNKNOWN_COLUMN,
            },
            None => UNKNOWN_COLUMN,
        }));
    }
}
