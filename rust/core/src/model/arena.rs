//! Many short byte strings in few pieces of memory.

/// Bytes of the first piece and of the largest piece. In between, a new piece has half the bytes of
/// all pieces so far, so at most a third of the memory is unused.
const PIECE_BYTES_MIN: usize = 1 << 10;
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Byte strings that are added one by one and dropped together.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    /// Pieces. No piece grows beyond its first capacity, so its bytes never move.
    pieces: Vec<Vec<u8>>,
    /// Bytes of all pieces.
    bytes: usize,
}

/// Position of a byte string in an [`Arena`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ArenaRange {
    piece: u32,
    start: u32,
    length: u32,
}

impl ArenaRange {
    /// The place of no byte string.
    pub(super) const NOWHERE: Self = Self { piece: u32::MAX, start: 0, length: 0 };
}

impl Arena {
    /// Adds a byte string.
    ///
    /// # Panics
    /// Panics if the byte string has 4 GiB or more.
    pub(super) fn push(&mut self, bytes: &[u8]) -> ArenaRange {
        let needed = self.bytes_for(bytes.len());
        if needed > 0 {
            self.bytes += needed;
            self.pieces.push(Vec::with_capacity(needed));
        }
        let last = self.pieces.len() - 1;
        let piece = &mut self.pieces[last];
        let place =
            ArenaRange { piece: int(last), start: int(piece.len()), length: int(bytes.len()) };
        piece.extend_from_slice(bytes);
        place
    }

    /// Returns the byte string that [`Self::push`] put at `place`.
    ///
    /// # Panics
    /// Panics if `place` is not from this arena.
    #[inline]
    pub(super) fn get(&self, place: ArenaRange) -> &[u8] {
        &self.pieces[place.piece as usize][place.start as usize..][..place.length as usize]
    }

    /// Returns the bytes of memory that pushing a byte string of this length would add.
    fn bytes_for(&self, length: usize) -> usize {
        let room = self.pieces.last().map(|piece| piece.capacity() - piece.len());
        if room.is_some_and(|room| room >= length) {
            return 0;
        }
        (self.bytes / 2).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX).max(length)
    }
}

fn int(number: usize) -> u32 {
    u32::try_from(number).expect("a name is far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_whatever_comes_after() {
        let mut arena = Arena::default();
        let texts: Vec<Vec<u8>> = (0..2_000_usize)
            .map(|at| vec![u8::try_from(at % 251).unwrap(); at * at % 5_003])
            .collect();
        let places: Vec<ArenaRange> = texts.iter().map(|text| arena.push(text)).collect();
        assert!(texts.iter().zip(&places).all(|(text, place)| arena.get(*place) == text));
        let used: usize = texts.iter().map(Vec::len).sum();
        assert!(arena.bytes <= used * 3 / 2 + PIECE_BYTES_MAX, "{} of {used}", arena.bytes);
    }
}
