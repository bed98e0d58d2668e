//! Long answers in pieces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::limits::SPARE_PIECES_MAX;

/// Bytes of one piece of a long answer.
pub const PIECE_BYTES: usize = 1 << 20;

/// Bytes that are set aside for a piece: a little more, for what one call appends to it.
pub const PIECE_CAPACITY: usize = PIECE_BYTES + PIECE_BYTES / 16;

/// Pieces of answers that were sent: an answer of megabytes would else be mapped and faulted in anew
/// each time.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A long answer that is made as it is taken, a piece of about a mebibyte at a time.
pub trait LongPieces: Iterator<Item = Vec<u8>> + Send {
    /// Bytes of memory that it holds, about: the values that are not written yet, and one piece.
    fn held_bytes(&self) -> usize;
}

/// The body of an answer.
pub enum Body {
    /// All of it, in pieces.
    Whole(Vec<Vec<u8>>),
    /// A way to its pieces.
    Long(Box<dyn LongPieces>),
}

/// A long answer in pieces of about a mebibyte: one buffer would be copied as it grows.
#[derive(Default)]
pub struct Chunks {
    full: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl Chunks {
    /// Room for about so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { full: Vec::new(), open: piece(bytes) }
    }

    /// The piece to append to. All that is appended before the next call stays in one piece.
    #[inline]
    pub fn open(&mut self) -> &mut Vec<u8> {
        if self.open.len() >= PIECE_BYTES {
            self.full.push(std::mem::replace(&mut self.open, new_piece()));
        }
        &mut self.open
    }

    /// Tells if a piece is full.
    #[must_use]
    pub fn has_piece(&self) -> bool {
        !self.full.is_empty() || self.open.len() >= PIECE_BYTES
    }

    /// The pieces, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.full.push(self.open);
        self.full
    }
}

/// A piece with room for about so many bytes, or for those of one piece.
#[must_use]
pub fn piece(bytes: usize) -> Vec<u8> {
    if bytes < PIECE_BYTES { Vec::with_capacity(bytes) } else { new_piece() }
}

/// Takes a piece back, to be filled anew, unless enough are kept ([`SPARE_PIECES_MAX`]).
pub fn give_back(mut piece: Vec<u8>) {
    if (PIECE_CAPACITY..2 * PIECE_CAPACITY).contains(&piece.capacity()) {
        piece.clear();
        let mut spare = spare();
        if spare.len() < SPARE_PIECES_MAX {
            spare.push(piece);
        }
    }
}

fn new_piece() -> Vec<u8> {
    spare().pop().unwrap_or_else(|| Vec::with_capacity(PIECE_CAPACITY))
}

fn spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_a_call_ended_and_come_in_order() {
        let mut chunks = Chunks::with_capacity(10);
        for number in 0..300_000_u32 {
            chunks.open().extend_from_slice(&number.to_le_bytes());
            chunks.open().extend_from_slice(&number.to_le_bytes());
        }
        let pieces = chunks.finish();
        assert_eq!(pieces.len(), 3);
        let whole = pieces.concat();
        assert!(
            whole
                .as_chunks()
                .0
                .iter()
                .zip(0..)
                .all(|(bytes, at)| *bytes == u32::to_le_bytes(at / 2))
        );
    }

    #[test]
    fn pieces_that_come_back_are_kept_up_to_a_bound_and_filled_anew() {
        for _ in 0..2 * SPARE_PIECES_MAX {
            give_back(Vec::with_capacity(PIECE_CAPACITY));
        }
        // Tests of other modules may take some meanwhile, and give none back.
        assert!(spare().len() <= SPARE_PIECES_MAX);
        give_back(Vec::with_capacity(64 * PIECE_CAPACITY));
        give_back(vec![1; 10]);
        assert!(
            spare().iter().all(|piece| piece.is_empty() && piece.capacity() < 2 * PIECE_CAPACITY)
        );
        let mut chunks = Chunks::with_capacity(PIECE_BYTES);
        assert_eq!(chunks.open(), b"");
    }
}
