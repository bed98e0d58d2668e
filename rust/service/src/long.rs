//! Answers that are made while their clients take them.

use fleetcast_core::model::chunks::{self, LongPieces};
use fleetcast_front::{AnswerRest, Piece};

/// A long answer that is being made.
pub struct LongAnswer {
    pieces: Box<dyn LongPieces>,
    /// Count of the bytes that were made.
    bytes: u64,
    when_over: Option<Box<dyn FnOnce(u64) + Send>>,
}

/// A piece whose memory is used again after it was sent.
struct SentPiece(Vec<u8>);

impl LongAnswer {
    /// Makes an answer of which no piece is made yet.
    #[must_use]
    pub fn new(pieces: Box<dyn LongPieces>) -> Self {
        Self { pieces, bytes: 0, when_over: None }
    }

    /// Registers `call`. It runs when the answer is complete or dropped, with the count of bytes
    /// made.
    pub fn when_over(&mut self, call: Box<dyn FnOnce(u64) + Send>) {
        self.when_over = Some(call);
    }

    /// Makes the next piece. Returns `None` at the end.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.next()?;
        self.bytes += piece.len() as u64;
        Some(piece)
    }
}

impl AnswerRest for LongAnswer {
    fn next(&mut self) -> Option<Piece> {
        Some(Box::new(SentPiece(self.next_piece()?)))
    }

    fn held_bytes(&self) -> u64 {
        self.pieces.held_bytes() as u64
    }
}

impl Drop for LongAnswer {
    fn drop(&mut self) {
        if let Some(call) = self.when_over.take() {
            call(self.bytes);
        }
    }
}

/// Wraps the bytes that the engine wrote, without a copy.
pub(crate) fn piece(bytes: Vec<u8>) -> Piece {
    Box::new(SentPiece(bytes))
}

impl AsRef<[u8]> for SentPiece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for SentPiece {
    fn drop(&mut self) {
        chunks::give_back(std::mem::take(&mut self.0));
    }
}
