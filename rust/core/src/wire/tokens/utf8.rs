//! Text of a body.

use std::borrow::Cow;
use std::str::Utf8Error;

/// Mark that editors put before a text, no part of it.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The body as UTF-8. Most bodies are ASCII, which is checked several times as fast.
#[expect(unsafe_code, reason = "the standard library has no stable safe way from ASCII to text")]
pub(crate) fn utf8(body: &[u8]) -> Result<&str, Utf8Error> {
    if body.is_ascii() {
        // SAFETY: `is_ascii` has just said that every byte is below 0x80, and any sequence of such
        // bytes is UTF-8, one character each.
        return Ok(unsafe { std::str::from_utf8_unchecked(body) });
    }
    std::str::from_utf8(body)
}

/// The body with a question mark for each byte that is no UTF-8, and the offsets of those.
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

/// The offset at which `text` begins, after a byte order mark.
pub(crate) fn without_mark(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }
}
