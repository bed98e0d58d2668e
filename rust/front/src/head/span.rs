//! Ranges in a head, so that its parts need no memory of their own.

use std::ops::Range;

/// A range of bytes in a head.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteSpan {
    start: u32,
    end: u32,
}

impl ByteSpan {
    /// Returns the range as a span. Panics beyond 4 GiB; no head is that long.
    pub(super) fn of(range: Range<usize>) -> Self {
        let offset = |index| u32::try_from(index).expect("a head is shorter than 4 GiB");
        Self { start: offset(range.start), end: offset(range.end) }
    }

    /// The bytes of the span in the head that it was made for.
    pub(super) fn of_bytes(self, head: &[u8]) -> &[u8] {
        &head[self.start as usize..self.end as usize]
    }
}
