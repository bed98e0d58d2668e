//! Long answers in pieces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::limits::SPARE_PIECES_MAX;

/// Bytes of a piece of a long answer, about.
pub const PIECE_BYTES: usize = 1 << 20;

/// Bytes reserved for a piece. The sixteenth beyond [`PIECE_BYTES`] is room for the last append.
pub const PIECE_CAPACITY: usize = PIECE_BYTES + PIECE_BYTES / 16;

/// Pieces of answers that were sent, for reuse. Otherwise the system would map and fault in the
/// memory of each answer of megabytes again.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A long answer that is written while it is read, in pieces of about a mebibyte.
pub trait LongPieces: Iterator<Item = Vec<u8>> + Send {
    /// Returns the approximate bytes of memory that the answer holds: the values that are not
    /// written yet, and one piece.
    fn held_bytes(&self) -> usize;
}

/// The body of an answer.
pub enum AnswerBody {
    /// The whole body, in pieces.
    Whole(Vec<Vec<u8>>),
    /// An iterator that writes the pieces.
    Long(Box<dyn LongPieces>),
}

/// A long answer in pieces of about a mebibyte. A single buffer would be copied whenever it grows.
///
/// Example: an answer of 2.5 MiB becomes two full pieces and one half full piece.
#[derive(Default)]
pub struct AnswerChunks {
    full: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl AnswerChunks {
    /// Returns an empty answer with room for about this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { full: Vec::new(), open: piece(bytes) }
    }

    /// Returns the piece to append to. Bytes that are appended before the next call stay in one
    /// piece.
    #[inline]
    pub fn open(&mut self) -> &mut Vec<u8> {
        if self.open.len() >= PIECE_BYTES {
            self.full.push(std::mem::replace(&mut self.open, new_piece()));
        }
        &mut self.open
    }

    /// Returns true if at least one piece is full.
    #[must_use]
    pub fn has_piece(&self) -> bool {
        !self.full.is_empty() || self.open.len() >= PIECE_BYTES
    }

    /// Returns the pieces, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.full.push(self.open);
        self.full
    }
}

/// Returns an empty piece with room for about this many bytes, but at most [`PIECE_CAPACITY`].
#[must_use]
pub fn piece(bytes: usize) -> Vec<u8> {
    if bytes < PIECE_BYTES { Vec::with_capacity(bytes) } else { new_piece() }
}

/// Takes back a piece for reuse, unless [`SPARE_PIECES_MAX`] pieces are kept already.
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
        let mut chunks = AnswerChunks::with_capacity(10);
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
        // Tests of other modules, which run at the same time, may take pieces and not give them
        // back.
        assert!(spare().len() <= SPARE_PIECES_MAX);
        give_back(Vec::with_capacity(64 * PIECE_CAPACITY));
        give_back(vec![1; 10]);
        assert!(
            spare().iter().all(|piece| piece.is_empty() && piece.capacity() < 2 * PIECE_CAPACITY)
        );
        let mut chunks = AnswerChunks::with_capacity(PIECE_BYTES);
        assert_eq!(chunks.open(), b"");
    }
}
