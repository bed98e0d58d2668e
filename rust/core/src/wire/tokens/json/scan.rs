//! Tokens of JSON, and values that are only checked.

use crate::model::limits::JSON_DEPTH_MAX;
use crate::model::swar::equal_bytes;

/// The document is not JSON from this byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syntax(pub(crate) usize);

/// Result of a scan.
pub(crate) type JsonResult<T> = Result<T, Syntax>;

/// A position in a document. `at` is a character boundary between tokens.
///
/// Small steps change the position in place and are inlined. Long steps take a copy and return the
/// offset after them. So the offset stays in a register while a record is read.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    #[inline]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns the bytes from here on.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// Returns the next byte. Returns 0 at the end, which is not a token either.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn error<T>(&self) -> JsonResult<T> {
        Err(Syntax(self.at.min(self.text.len())))
    }

    /// Takes `byte` if it comes next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let taken = self.bytes().get(self.at) == Some(&byte);
        self.at += usize::from(taken);
        taken
    }

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> JsonResult<()> {
        if self.take(byte) { Ok(()) } else { self.error() }
    }

    /// Takes `prefix` if it comes next.
    #[inline]
    pub(crate) fn take_prefix(&mut self, prefix: &[u8]) -> bool {
        let taken = self.rest().starts_with(prefix);
        if taken {
            self.at += prefix.len();
        }
        taken
    }

    #[inline]
    pub(crate) fn skip_space(&mut self) {
        // Most tokens follow each other directly, so a single comparison is enough.
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// Goes from after a key to before its value.
    #[inline]
    pub(crate) fn colon(&mut self) -> JsonResult<()> {
        if !self.take(b':') {
            self.skip_space();
            self.expect(b':')?;
        }
        self.skip_space();
        Ok(())
    }

    /// Goes from after an opening bracket to before the first element. If there is no element, goes
    /// after `close` and returns false.
    #[inline]
    pub(crate) fn first(&mut self, close: u8) -> bool {
        self.skip_space();
        !self.take(close)
    }

    /// Goes from after an element to before the next element. If there is no element, goes after
    /// `close` and returns false.
    #[inline]
    pub(crate) fn next(&mut self, close: u8) -> JsonResult<bool> {
        self.skip_space();
        if self.take(b',') {
            self.skip_space();
            return Ok(true);
        }
        self.expect(close)?;
        Ok(false)
    }

    /// Returns the length up to and including the first closing brace.
    #[inline]
    pub(crate) fn first_brace_length(&self) -> Option<usize> {
        let rest = self.rest();
        let (chunks, tail) = rest.as_chunks::<8>();
        for (at, chunk) in chunks.iter().enumerate() {
            let found = equal_bytes(u64::from_le_bytes(*chunk), b'}');
            if found != 0 {
                return Some(at * 8 + (found.trailing_zeros() / 8) as usize + 1);
            }
        }
        let in_tail = tail.iter().position(|&byte| byte == b'}')?;
        Some(rest.len() - tail.len() + in_tail + 1)
    }

    #[inline]
    pub(crate) fn literal(&mut self, literal: &[u8]) -> JsonResult<()> {
        if self.take_prefix(literal) { Ok(()) } else { self.error() }
    }

    /// Returns the offset after the value that begins here, inside of `depth` arrays and objects.
    pub(crate) fn value_end(mut self, depth: usize) -> JsonResult<usize> {
        match self.peek() {
            b'"' => return self.string_end(),
            b'{' | b'[' if depth >= JSON_DEPTH_MAX => return self.error(),
            b'{' => return self.object_end(depth + 1),
            b'[' => return self.array_end(depth + 1),
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => return self.number_end(),
        }
        Ok(self.at)
    }

    fn object_end(mut self, depth: usize) -> JsonResult<usize> {
        self.expect(b'{')?;
        let mut more = self.first(b'}');
        while more {
            self.at = self.string_end()?;
            self.colon()?;
            self.at = self.value_end(depth)?;
            more = self.next(b'}')?;
        }
        Ok(self.at)
    }

    fn array_end(mut self, depth: usize) -> JsonResult<usize> {
        self.expect(b'[')?;
        let mut more = self.first(b']');
        while more {
            self.at = self.value_end(depth)?;
            more = self.next(b']')?;
        }
        Ok(self.at)
    }
}
