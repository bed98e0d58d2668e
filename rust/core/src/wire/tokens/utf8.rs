//! Text of a body.

use std::borrow::Cow;
use std::str::Utf8Error;

/// Mark that editors put before a text. It is not part of the text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the body as UTF-8. Most bodies are ASCII, and checking for ASCII is several times as
/// fast.
#[expect(unsafe_code, reason = "the standard library has no stable safe way from ASCII to text")]
pub(crate) fn utf8(body: &[u8]) -> Result<&str, Utf8Error> {
    if body.is_ascii() {
        // SAFETY: `is_ascii` has just said that every byte is below 0x80, and any sequence of such
        // bytes is UTF-8, one character each.
        return Ok(unsafe { std::str::from_utf8_unchecked(body) });
    }
    std::str::from_utf8(body)
}

/// Replaces each byte that is not UTF-8 by a question mark. Returns the text and the offsets of
/// these marks.
pub(crate) fn replaced(body: &[u8]) -> (Cow<'_, str>, Vec<usize>) {
    if let Ok(text) = utf8(body) {
        return (text.into(), Vec::new());
    }
    let (mut text, mut wrong) = (String::with_capacity(body.len()), Vec::new());
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        for _ in chunk.invalid() {
            wrong.push(text.len());
            text.push('?');
        }
    }
    (text.into(), wrong)
}

/// Returns the offset at which `text` begins after a byte order mark.
pub(crate) fn without_mark(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }
}
