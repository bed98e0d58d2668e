//! Text of a body.

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
