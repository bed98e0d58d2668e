//! Long answers of `GET /topology`, in pieces.

use std::sync::Arc;

use crate::model::chunks::{LongPieces, PIECE_BYTES, PIECE_CAPACITY};
use crate::plane::registry::NamesRegistry;
use crate::query::latest::LatestRest;

pub(super) const LATEST_END: &[u8] = b"]}";

/// A long answer, piece by piece. All of it is as of the instant at which it began. Later writes
/// and removals do not change it, and neither does closing the plane. It holds the values that have
/// not been sent, and no names.
pub(super) struct LongLatest {
    registry: Arc<NamesRegistry>,
    first: Option<Vec<u8>>,
    rest: LatestRest,
}

impl LongLatest {
    pub(super) fn new(registry: &Arc<NamesRegistry>, first: Vec<u8>, rest: LatestRest) -> Self {
        Self { registry: Arc::clone(registry), first: Some(first), rest }
    }
}

impl LongPieces for LongLatest {
    fn held_bytes(&self) -> usize {
        self.rest.held_bytes() + PIECE_CAPACITY
    }
}

impl Iterator for LongLatest {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut piece = self.rest.next_piece(&self.registry.names().catalog, PIECE_BYTES);
        if self.rest.is_empty() {
            piece.extend_from_slice(LATEST_END);
        }
        Some(piece)
    }
}
