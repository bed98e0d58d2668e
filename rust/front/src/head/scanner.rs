//! Finds the end of a head in bytes that arrive in pieces.

use std::io::BufRead;

use super::refusal::HeadFault;

const REQUEST_LINE_BYTES_MAX: usize = 8190;

/// Progress of the search for the end of one head. No byte is examined twice.
#[derive(Clone, Debug, Default)]
pub struct HeadScanner {
    scanned: usize,
    line_start: usize,
    request_line_seen: bool,
}

impl HeadScanner {
    /// Makes a scanner for a head of which no byte has arrived.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the count of bytes of the head at the beginning of `held`, or `None` while the head
    /// is incomplete. `held` is the input of the last call, followed by the bytes that arrived
    /// since.
    ///
    /// # Errors
    /// Returns a [`HeadFault`] if no continuation can mend the head. Such a head has a line that
    /// ends without CR, a request line that is too long, or more than `head_bytes_max` bytes
    /// without an end.
    pub fn end(&mut self, held: &[u8], head_bytes_max: usize) -> Result<Option<usize>, HeadFault> {
        let view = &held[..held.len().min(head_bytes_max)];
        while let Some(newline) = self.next_newline(view) {
            self.check_request_line(newline)?;
            if newline == 0 || view[newline - 1] != b'\r' {
                return Err(HeadFault::BadRequest);
            }
            let is_blank = newline - 1 == self.line_start;
            if is_blank && self.line_start > 0 {
                return Ok(Some(newline + 1));
            }
            if !is_blank && !self.request_line_seen {
                if newline - 1 - self.line_start > REQUEST_LINE_BYTES_MAX {
                    return Err(HeadFault::UriTooLong);
                }
                self.request_line_seen = true;
            }
            self.line_start = newline + 1;
        }
        self.check_request_line(view.len())?;
        if held.len() > head_bytes_max {
            return Err(HeadFault::HeadersTooLarge);
        }
        Ok(None)
    }

    fn next_newline(&mut self, view: &[u8]) -> Option<usize> {
        let mut rest = &view[self.scanned..];
        // The standard library reaches `memchr` only this way. Reading from a slice cannot fail.
        let skipped = rest.skip_until(b'\n').unwrap_or(0);
        self.scanned += skipped;
        (skipped > 0 && view[self.scanned - 1] == b'\n').then(|| self.scanned - 1)
    }

    /// Refuses a request line that has no newline before `index`, if it would be too long even if
    /// the next two bytes ended it.
    fn check_request_line(&self, index: usize) -> Result<(), HeadFault> {
        if !self.request_line_seen && index - self.line_start > REQUEST_LINE_BYTES_MAX + 2 {
            return Err(HeadFault::UriTooLong);
        }
        Ok(())
    }
}
