//! The whole text: rows without their header.

use super::columns::CsvColumns;
use super::parser::Parser;
use super::split::{Unclosed, split, to_row};
use crate::model::batch::ParseResult;
use crate::wire::ParseContext;
use crate::wire::tokens::line::line_ends;
use crate::wire::tokens::utf8::replaced;

/// Reads rows, less their header, into a batch, by the rules of a JSON document of the same records.
/// A cell without text is no value, and so is `nan` among numbers; `""` is an empty text. The types of
/// `header` that are not known become those of the first cells with a text.
///
/// # Errors
/// As of such a document, the first fault of each row, of
/// [`crate::model::limits::IMPORT_FAULTS_MAX`] rows at most: they are located by the index of the row,
/// empty lines not counted. A row that has too few cells or too many is
/// [`crate::model::fault::FaultCode::RecordType`], one that is not UTF-8, or whose quotes are closed
/// within a cell or not at all, `LineInvalid`. A cell of another type than its column, or with a number
/// that is out of range, is located by `cell` and its index.
///
/// # Panics
/// As [`crate::wire::parse_json`].
pub fn parse_csv(body: &[u8], header: &mut CsvColumns, context: ParseContext<'_>) -> ParseResult {
    let (text, wrong) = replaced(body);
    let mut parser = Parser::new(&text, header, context.of_shared_names(body));
    let (received, line_count) = parser.rows(&wrong);
    parser.faults.check(received, context.limits.batch_records_max)?;
    let mut batch = parser.batch.finish()?;
    batch.line_count = line_count;
    Ok(batch)
}

/// Offsets of the rows of `body` as [`parse_csv`] counts them: start, end, and the number of the
/// line, from 0; and the start of the first whose quotes are open at the end, if there is one.
#[must_use]
pub fn csv_records(body: &[u8]) -> (Vec<(usize, usize, usize)>, Option<usize>) {
    let (text, _) = replaced(body);
    let (mut rows, mut open_at, mut cells) = (Vec::new(), None, Vec::new());
    let (mut at, mut line) = (0, 0);
    while let Some(start) = to_row(body, at, &mut line) {
        at = match split(&text, start, &mut cells) {
            Ok(end) => end,
            Err(Unclosed { is_open, end }) => {
                open_at = open_at.or(is_open.then_some(start));
                end
            }
        };
        rows.push((start, at, line));
        line += line_ends(body.get(start..at).unwrap_or_default());
    }
    (rows, open_at)
}

/// The cells of a row, `None` where its quotes are wrong.
#[must_use]
pub fn csv_cells(row: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    split(row, 0, &mut cells).ok()?;
    Some(cells.into_iter().map(|cell| cell.text.into_owned()).collect())
}

impl Parser<'_, '_> {
    /// Reads all rows; the numbers of rows and of lines.
    fn rows(&mut self, wrong: &[usize]) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let (mut count, mut at, mut line) = (0, 0, 0);
        let mut wrong = wrong.iter().copied().peekable();
        while let Some(start) = to_row(bytes, at, &mut line) {
            let may_be_quick = wrong.peek().is_none() && self.is_sound();
            let quick = if may_be_quick { self.quick_row(start) } else { None };
            at = match quick {
                Some(end) => end,
                None if count < self.batch.limits.batch_records_max => {
                    let end = self.row(start, count, wrong.peek().copied());
                    while wrong.next_if(|at| *at < end).is_some() {}
                    line += line_ends(bytes.get(start..end).unwrap_or_default());
                    end
                }
                // Beyond the bound the batch is refused, whatever is there.
                None => bytes.len(),
            };
            count += 1;
        }
        let is_ended = bytes.is_empty() || bytes.ends_with(b"\n");
        (count, line + usize::from(!is_ended))
    }
}
