//! Tokens of JSON, and values that are only checked.

use crate::model::limits::JSON_DEPTH_MAX;

/// The document is not JSON from this byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syntax(pub(super) usize);

/// What a scan gives back.
pub(super) type Scan<T> = Result<T, Syntax>;

/// A place in a document. `at` never leaves a character boundary between tokens.
///
/// Small steps change it in place and are inlined; long ways take a copy and return the place
/// behind them. So the place stays in a register while a record is read.
#[derive(Clone, Copy)]
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    #[inline]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The bytes from here on.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// The next byte; 0 at the end, which is no token either.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn error<T>(&self) -> Scan<T> {
        Err(Syntax(self.at.min(self.text.len())))
    }

    /// Takes `byte` if it is the next one.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let taken = self.bytes().get(self.at) == Some(&byte);
        self.at += usize::from(taken);
        taken
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { self.error() }
    }

    /// Takes `prefix` if it comes next.
    #[inline]
    pub(super) fn take_prefix(&mut self, prefix: &[u8]) -> bool {
        let taken = self.rest().starts_with(prefix);
        if taken {
            self.at += prefix.len();
        }
        taken
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        // Most tokens follow each other directly, so that one comparison tells.
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// From behind a key to before its value.
    #[inline]
    pub(super) fn colon(&mut self) -> Scan<()> {
        if !self.take(b':') {
            self.skip_space();
            self.expect(b':')?;
        }
        self.skip_space();
        Ok(())
    }

    /// From behind an opening bracket to before the first element; false, and behind `close`,
    /// if there is none.
    #[inline]
    pub(super) fn first(&mut self, close: u8) -> bool {
        self.skip_space();
        !self.take(close)
    }

    /// From behind an element to before the next; false, and behind `close`, if there is none.
    #[inline]
    pub(super) fn next(&mut self, close: u8) -> Scan<bool> {
        self.skip_space();
        if self.take(b',') {
            self.skip_space();
            return Ok(true);
        }
        self.expect(close)?;
        Ok(false)
    }

    #[inline]
    pub(super) fn literal(&mut self, literal: &[u8]) -> Scan<()> {
        if self.take_prefix(literal) { Ok(()) } else { self.error() }
    }

    /// The place behind the value that begins here, inside of `depth` arrays and objects.
    pub(super) fn value_end(mut self, depth: usize) -> Scan<usize> {
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

    fn object_end(mut self, depth: usize) -> Scan<usize> {
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

    fn array_end(mut self, depth: usize) -> Scan<usize> {
        self.expect(b'[')?;
        let mut more = self.first(b']');
        while more {
            self.at = self.value_end(depth)?;
            more = self.next(b']')?;
        }
        Ok(self.at)
    }
}
