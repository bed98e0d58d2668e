//! Strings of JSON: runs of plain bytes eight at a time, escapes one by one.

use std::borrow::Cow;

use super::scan::{JsonResult, Scanner, Syntax};
use crate::model::swar::{HIGH_BITS, ONES, equal_bytes};

/// Finds, as [`equal_bytes`] does, the first byte that ends a run of plain string bytes.
#[inline]
const fn string_bytes_end(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH_BITS;
    equal_bytes(word, b'"') | equal_bytes(word, b'\\') | control
}

impl<'a> Scanner<'a> {
    /// Returns the offset of the first quote, backslash or control character from `at` on, or of
    /// the end of the document.
    #[inline]
    pub(crate) fn plain_end(&self, mut at: usize) -> usize {
        let bytes = self.bytes();
        while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let ends = string_bytes_end(u64::from_le_bytes(*chunk));
            if ends != 0 {
                return at + (ends.trailing_zeros() / 8) as usize;
            }
            at += 8;
        }
        let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let rest = bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(is_end).unwrap_or(rest.len())
    }

    /// Reads a string and unescapes it.
    #[inline]
    pub(crate) fn string(&mut self) -> JsonResult<Cow<'a, str>> {
        self.expect(b'"')?;
        let start = self.at;
        let end = self.plain_end(start);
        if self.bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Cow::Borrowed(self.span(start, end)?));
        }
        let (string, at) = self.escaped_string(start, end)?;
        self.at = at;
        Ok(Cow::Owned(string))
    }

    /// Returns the offset after the string that begins here.
    pub(crate) fn string_end(mut self) -> JsonResult<usize> {
        self.string().map(|_| self.at)
    }

    /// Returns the text between two offsets that are ends of tokens or ASCII characters.
    #[inline]
    pub(crate) fn span(&self, start: usize, end: usize) -> JsonResult<&'a str> {
        self.text.get(start..end).ok_or(Syntax(start))
    }

    /// Reads the string whose plain beginning reaches from `start` to `end`. Returns it with the
    /// offset after it.
    #[cold]
    fn escaped_string(mut self, mut start: usize, mut end: usize) -> JsonResult<(String, usize)> {
        let mut out = String::new();
        loop {
            out.push_str(self.span(start, end)?);
            self.at = end;
            match self.peek() {
                b'"' => return Ok((out, end + 1)),
                b'\\' => out.push(self.escape()?),
                // A control character, or the end of the document.
                _ => return self.error(),
            }
            start = self.at;
            end = self.plain_end(start);
        }
    }

    fn escape(&mut self) -> JsonResult<char> {
        self.expect(b'\\')?;
        let plain = match self.peek() {
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return self.error(),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Reads from the `u` on. A pair of surrogates is one character, and a lone surrogate is
    /// refused. Example: `\ud83d\ude80` is one rocket.
    fn unicode_escape(&mut self) -> JsonResult<char> {
        let start = self.at;
        let unit = self.code_unit()?;
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit).ok_or(Syntax(start));
        }
        if !self.take(b'\\') {
            return Err(Syntax(start));
        }
        let low = self.code_unit()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(Syntax(start));
        }
        char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)).ok_or(Syntax(start))
    }

    fn code_unit(&mut self) -> JsonResult<u32> {
        self.expect(b'u')?;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.peek()).to_digit(16) else {
                return self.error();
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }
}
