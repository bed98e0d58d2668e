//! Splits a row into cells.

use std::borrow::Cow;

use crate::model::swar::equal_bytes;
use crate::wire::tokens::line::{is_end, line_length};

/// A cell as it is written in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawCell<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) is_quoted: bool,
}

impl RawCell<'_> {
    /// Returns the text, or `None` for a cell without a text. `""` is an empty text.
    pub(super) fn value(&self) -> Option<&str> {
        (self.is_quoted || !self.text.is_empty()).then_some(&*self.text)
    }
}

/// A row whose quotes are not closed, or are closed within a cell.
pub(super) struct UnclosedRow {
    /// If true, the text ends before the quotes are closed.
    pub(super) is_open: bool,
    /// Offset of the end of the line.
    pub(super) end: usize,
}

/// Reads the cells of the row that begins at `at`. Returns the offset of the end of its line.
pub(super) fn split<'a>(
    text: &'a str,
    mut at: usize,
    cells: &mut Vec<RawCell<'a>>,
) -> Result<usize, UnclosedRow> {
    let bytes = text.as_bytes();
    cells.clear();
    loop {
        let (cell, end) = if bytes.get(at) == Some(&b'"') {
            quoted(text, at)?
        } else {
            let end = at + cell_length(bytes.get(at..).unwrap_or_default());
            let text = text.get(at..end).unwrap_or_default().into();
            (RawCell { text, is_quoted: false }, end)
        };
        cells.push(cell);
        if bytes.get(end) != Some(&b',') {
            return Ok(end);
        }
        at = end + 1;
    }
}

/// Reads the quoted cell that begins at `start`. Returns the cell and the offset after it.
fn quoted(text: &str, start: usize) -> Result<(RawCell<'_>, usize), UnclosedRow> {
    let bytes = text.as_bytes();
    let line_end = |at: usize| at + line_length(bytes.get(at..).unwrap_or_default());
    let mut at = start + 1;
    let mut has_escapes = false;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'"') else {
            return Err(UnclosedRow { is_open: true, end: line_end(start) });
        };
        at += length;
        if bytes.get(at + 1) != Some(&b'"') {
            break;
        }
        has_escapes = true;
        at += 2;
    }
    let inside = text.get(start + 1..at).unwrap_or_default();
    let text = if has_escapes { inside.replace("\"\"", "\"").into() } else { inside.into() };
    if bytes.get(at + 1) == Some(&b',') || is_end(bytes, at + 1) {
        return Ok((RawCell { text, is_quoted: true }, at + 1));
    }
    Err(UnclosedRow { is_open: false, end: line_end(at) })
}

/// Returns the length of the cell without quotes at the start of `rest`.
#[inline]
pub(super) fn cell_length(rest: &[u8]) -> usize {
    for (at, chunk) in rest.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let found = equal_bytes(word, b',') | equal_bytes(word, b'\n');
        if found != 0 {
            let length = at * 8 + (found.trailing_zeros() / 8) as usize;
            return without_return(rest, length);
        }
    }
    let tail = rest.len() & !7;
    let in_tail = rest.get(tail..).unwrap_or_default();
    let length = in_tail.iter().position(|byte| matches!(byte, b',' | b'\n'));
    without_return(rest, tail + length.unwrap_or(in_tail.len()))
}

/// Returns the length of a cell without the carriage return at the end of its line.
#[inline]
fn without_return(rest: &[u8], length: usize) -> usize {
    let ends_line = length > 0 && rest.get(length) != Some(&b',');
    length - usize::from(ends_line && rest.get(length - 1) == Some(&b'\r'))
}

/// Returns true if a cell ends at this offset.
#[inline]
pub(super) fn is_cell_end(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b',') || is_end(bytes, at)
}

/// Goes to the next row and counts the ends of lines before it. Returns `None` if there is no more
/// row.
#[inline]
pub(super) fn to_row(bytes: &[u8], mut at: usize, line: &mut usize) -> Option<usize> {
    while at < bytes.len() {
        if !is_end(bytes, at) {
            return Some(at);
        }
        *line += usize::from(bytes.get(at) == Some(&b'\n'));
        at += 1;
    }
    None
}
