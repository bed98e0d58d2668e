//! Positions of imports. A position is stored in the commit of the block before it.

use crate::model::error::{Error, Result};

/// Greatest number of imports that a store knows. A further import pushes out the import whose
/// cursor moved longest ago.
pub const CURSORS_MAX: usize = 16;
/// Greatest length of a cursor in bytes. All cursors then fit on one page of a database.
pub const CURSOR_BYTES_MAX: usize = 64;

/// Position of an import. After a crash, the import learns from it which records were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Random id of the import.
    pub key: [u8; 16],
    /// The position, sealed by the caller. An empty position removes the import.
    pub position: Vec<u8>,
}

/// Cursors of a store. The cursor that moved last is at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursors(Vec<Cursor>);

impl Cursors {
    pub(super) fn get(&self, key: &[u8; 16]) -> Option<&[u8]> {
        self.0.iter().find(|cursor| cursor.key == *key).map(|cursor| &*cursor.position)
    }

    pub(super) fn set(&mut self, cursor: &Cursor) {
        self.0.retain(|other| other.key != cursor.key);
        if !cursor.position.is_empty() {
            self.0.push(cursor.clone());
        }
        let excess = self.0.len().saturating_sub(CURSORS_MAX);
        self.0.drain(..excess);
    }

    /// Replaces each position by the result of `change`.
    ///
    /// # Errors
    /// Returns the errors of `change`. Some positions may be replaced then.
    pub(super) fn replace(&mut self, change: &dyn Fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
        for cursor in &mut self.0 {
            cursor.position = change(&cursor.position)?;
        }
        Ok(())
    }

    /// Encodes the cursors. For each: the key, the length of the position in one byte, the
    /// position.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Cursor { key, position } in &self.0 {
            bytes.extend(key);
            bytes.push(u8::try_from(position.len()).expect("the writer bounds a position"));
            bytes.extend(position);
        }
        bytes
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Self> {
        let mut cursors = Vec::new();
        while !bytes.is_empty() {
            let (cursor, rest) =
                Cursor::first(bytes).ok_or(Error::Corrupt { what: "the cursors" })?;
            cursors.push(cursor);
            bytes = rest;
        }
        Ok(Self(cursors))
    }
}

/// Encodes cursors for a [`super::StoreSnapshot`]. The cursor that moved last is at the end.
#[must_use]
pub fn encode_cursors(cursors: Vec<Cursor>) -> Vec<u8> {
    Cursors(cursors).encode()
}

/// Decodes the cursors of a [`super::StoreSnapshot`].
///
/// # Errors
/// Returns [`Error::Corrupt`] if the bytes are damaged.
pub fn decode_cursors(bytes: &[u8]) -> Result<Vec<Cursor>> {
    Cursors::decode(bytes).map(|cursors| cursors.0)
}

impl Cursor {
    /// Decodes the first of some encoded cursors. Also returns the other bytes.
    pub(super) fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (key, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (position, rest) = rest.split_at_checked(usize::from(*length))?;
        Some((Self { key: *key, position: position.to_vec() }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(number: u8, position: &[u8]) -> Cursor {
        Cursor { key: [number; 16], position: position.to_vec() }
    }

    #[test]
    fn the_ones_that_moved_last_are_kept() {
        let mut cursors = Cursors::default();
        for number in 0..=16 {
            cursors.set(&cursor(number, b"a"));
        }
        cursors.set(&cursor(1, b"bc"));
        cursors.set(&cursor(17, b"d"));
        cursors.set(&cursor(9, b""));
        let found: Vec<_> = (0..18).map(|number| cursors.get(&[number; 16])).collect();
        assert_eq!(found.iter().filter(|position| position.is_some()).count(), 15);
        assert_eq!([found[0], found[2], found[9]], [None; 3]);
        assert_eq!([found[1], found[17]], [Some(b"bc".as_slice()), Some(b"d".as_slice())]);
        assert_eq!(Cursors::decode(&cursors.encode()).unwrap(), cursors);
    }

    #[test]
    fn a_shortened_record_is_damage() {
        let mut cursors = Cursors::default();
        cursors.set(&cursor(1, b"abc"));
        let bytes = cursors.encode();
        assert!((1..bytes.len()).all(|length| Cursors::decode(&bytes[..length]).is_err()));
    }
}
