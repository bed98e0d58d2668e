//! The whole text: rows without their header.

use super::columns::CsvColumns;
use super::parser::CsvParser;
use super::split::{UnclosedRow, split, to_row};
use crate::model::batch::ParseResult;
use crate::wire::ParseContext;
use crate::wire::tokens::line::line_ends;
use crate::wire::tokens::utf8::replaced;

/// Reads rows, without their header, into a batch, by the rules of a JSON document with the same
/// records. A cell without a text is no value, and neither is `nan` among numbers. `""` is an empty
/// text. Unknown types in `header` become the types of the first cells with a text.
///
/// Example: with a header of time, `entity_id` and `snr_db`, the row `2026-01-01T00:00:00Z,e1,` has
/// no value.
///
/// # Errors
/// Returns the errors of such a document: the first fault of each row, of at most
/// [`crate::model::limits::IMPORT_FAULTS_MAX`] rows. A fault is located by the index of its row.
/// Empty lines do not count.
///
/// - A row with too few or too many cells is [`crate::model::fault::FaultCode::RecordType`].
/// - A row that is not UTF-8 is `LineInvalid`, and so is a row whose quotes are closed within a
///   cell or not at all.
/// - A cell of another type than its column, or with a number out of range, is located by `cell`
///   and its index.
///
/// # Panics
/// Panics as [`crate::wire::parse_json`] does.
pub fn parse_csv(body: &[u8], header: &mut CsvColumns, context: ParseContext<'_>) -> ParseResult {
    let (text, wrong) = replaced(body);
    let mut parser = CsvParser::new(&text, header, context.of_shared_names(body));
    let (received, line_count) = parser.rows(&wrong);
    parser.faults.check(received, context.limits.batch_records_max)?;
    let mut batch = parser.batch.finish()?;
    batch.line_count = line_count;
    Ok(batch)
}

/// Returns the offsets of the rows of `body` as [`parse_csv`] counts them: start, end, and the
/// number of the line, from 0. Also returns the start of the first row whose quotes are still open
/// at the end, if there is such a row.
#[must_use]
pub fn csv_records(body: &[u8]) -> (Vec<(usize, usize, usize)>, Option<usize>) {
    let (text, _) = replaced(body);
    let (mut rows, mut open_at, mut cells) = (Vec::new(), None, Vec::new());
    let (mut at, mut line) = (0, 0);
    while let Some(start) = to_row(body, at, &mut line) {
        at = match split(&text, start, &mut cells) {
            Ok(end) => end,
            Err(UnclosedRow { is_open, end }) => {
                open_at = open_at.or(is_open.then_some(start));
                end
            }
        };
        rows.push((start, at, line));
        line += line_ends(body.get(start..at).unwrap_or_default());
    }
    (rows, open_at)
}

/// Returns the cells of a row, or `None` if its quotes are wrong. Example: `a,"b,c"` has the cells
/// `a` and `b,c`.
#[must_use]
pub fn csv_cells(row: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    split(row, 0, &mut cells).ok()?;
    Some(cells.into_iter().map(|cell| cell.text.into_owned()).collect())
}

impl CsvParser<'_, '_> {
    /// Reads all rows. Returns the number of rows and of lines.
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
                // Too many rows refuse the batch, so the other rows need no reading.
                None => bytes.len(),
            };
            count += 1;
        }
        let is_ended = bytes.is_empty() || bytes.ends_with(b"\n");
        (count, line + usize::from(!is_ended))
    }
}
