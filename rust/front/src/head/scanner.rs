//! Finds the end of a head in bytes that come piece by piece.

use std::io::BufRead;

use super::refusal::Refusal;

const REQUEST_LINE_BYTES_MAX: usize = 8190;

/// Progress of the search for the end of one head; no byte is looked at twice.
#[derive(Clone, Debug, Default)]
pub struct HeadScanner {
    scanned: usize,
    line_start: usize,
    request_line_seen: bool,
}

impl HeadScanner {
    /// A scanner for a head of which nothing has come.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Count of the bytes of the head that `held` begins with, or `None` while it is incomplete.
    /// `held` is what the last call got with what has come since behind it.
    ///
    /// # Errors
    /// A beginning that no continuation can mend: a line that ends without CR, too long a request
    /// line, or more than `head_bytes_max` bytes without an end.
    pub fn end(&mut self, held: &[u8], head_bytes_max: usize) -> Result<Option<usize>, Refusal> {
        let view = &held[..held.len().min(head_bytes_max)];
        while let Some(newline) = self.next_newline(view) {
            self.check_request_line(newline)?;
            if newline == 0 || view[newline - 1] != b'\r' {
                return Err(Refusal::BadRequest);
            }
            let is_blank = newline - 1 == self.line_start;
            if is_blank && self.line_start > 0 {
                return Ok(Some(newline + 1));
            }
            if !is_blank && !self.request_line_seen {
                if newline - 1 - self.line_start > REQUEST_LINE_BYTES_MAX {
                    return Err(Refusal::UriTooLong);
                }
                self.request_line_seen = true;
            }
            self.line_start = newline + 1;
        }
        self.check_request_line(view.len())?;
        if held.len() > head_bytes_max {
            return Err(Refusal::HeadersTooLarge);
        }
        Ok(None)
    }

    fn next_newline(&mut self, view: &[u8]) -> Option<usize> {
        let mut rest = &view[self.scanned..];
        // The standard library's way to `memchr`; reading from a slice cannot fail.
        let skipped = rest.skip_until(b'\n').unwrap_or(0);
        self.scanned += skipped;
        (skipped > 0 && view[self.scanned - 1] == b'\n').then(|| self.scanned - 1)
    }

    /// Refuses a request line that has no newline before `index` and can only be too long, were
    /// the next two bytes its end.
    fn check_request_line(&self, index: usize) -> Result<(), Refusal> {
        if !self.request_line_seen && index - self.line_start > REQUEST_LINE_BYTES_MAX + 2 {
            return Err(Refusal::UriTooLong);
        }
        Ok(())
    }
}
