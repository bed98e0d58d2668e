//! The data keys of a plane. There are two while the data key turns.

use zeroize::Zeroizing;

use super::key::DataKey;
use crate::model::error::Result;

/// Number of slots for data keys. A plane has at most two keys, so a key that is gone leaves its
/// slot to the next key but one.
pub(super) const SLOTS: u8 = 2;

/// Place of a data key among the keys of its plane: 0 or 1. Sealed bytes name the slot of their
/// key.
pub type KeySlot = u8;

/// Name of a data key, derived from the key. A later key in the same slot has another id. The key
/// cannot be computed from its id.
pub type KeyId = [u8; 16];

/// Data keys of a plane, oldest first, each in its slot.
///
/// A turn has three steps. A new key becomes known; then it seals, and the old key only opens; then
/// the old key is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataKeys {
    pub(super) keys: Vec<(KeySlot, DataKey)>,
    pub(super) sealing: KeySlot,
    /// Key of the hashes of names, which never turns. `None` if no data key has turned: it is
    /// derived from the first.
    pub(super) name_key: Option<DataKey>,
}

impl From<DataKey> for DataKeys {
    fn from(key: DataKey) -> Self {
        Self { keys: vec![(0, key)], sealing: 0, name_key: None }
    }
}

impl DataKeys {
    /// Returns the slot of the key that seals.
    #[must_use]
    pub fn sealing(&self) -> KeySlot {
        self.sealing
    }

    /// Returns the slot of the newest key. It is not the slot of the key that seals while a new key
    /// is known and does not seal yet.
    #[must_use]
    pub fn newest(&self) -> KeySlot {
        self.keys.last().map_or(self.sealing, |(slot, _)| *slot)
    }

    /// Returns the slot of the key that only opens what it sealed, if there is such a key.
    #[must_use]
    pub fn old(&self) -> Option<KeySlot> {
        self.keys.first().map(|(slot, _)| *slot).filter(|slot| *slot != self.sealing)
    }

    /// Returns the keys with a new key, which does not seal yet. `name_key` is the key of the hashes
    /// of names.
    ///
    /// # Errors
    /// Returns the errors of [`DataKey::random`].
    pub(super) fn with_new(mut self, name_key: &Zeroizing<[u8; 32]>) -> Result<Self> {
        self.keys.push((SLOTS - 1 - self.sealing, DataKey::random()?));
        self.name_key.get_or_insert(DataKey(name_key.clone()));
        Ok(self)
    }

    /// Returns the keys with the newest key as the key that seals.
    #[must_use]
    pub fn turned(mut self) -> Self {
        self.sealing = self.newest();
        self
    }

    /// Returns the keys without the old key.
    #[must_use]
    pub fn without_old(mut self) -> Self {
        self.keys.retain(|(slot, _)| *slot == self.sealing);
        self
    }

    /// Encodes the keys: the slot that seals, the key of hashes, then slot and key of each.
    ///
    /// Before a turn it is the first key alone. The caller erases the bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Reserved, so that no copy is left behind when the bytes grow.
        let mut bytes = Vec::with_capacity(1 + 32 + usize::from(SLOTS) * 33);
        if let Some(name_key) = &self.name_key {
            bytes.push(self.sealing);
            bytes.extend_from_slice(&*name_key.0);
        }
        for (slot, key) in &self.keys {
            bytes.extend(self.name_key.as_ref().map(|_| *slot));
            bytes.extend_from_slice(&*key.0);
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (sealing, rest) = bytes.split_first()?;
        let (name_key, mut rest) = rest.split_first_chunk()?;
        let mut keys = Vec::new();
        while let Some((slot, after)) = rest.split_first() {
            let (key, after) = after.split_first_chunk()?;
            keys.push((*slot, DataKey::from_bytes(key)));
            rest = after;
        }
        let slots: Vec<_> = keys.iter().map(|(slot, _)| *slot).collect();
        let is_sound = match *slots {
            [only] => only == *sealing && only < SLOTS,
            [old, new] => old < SLOTS && new == SLOTS - 1 - old && *sealing < SLOTS,
            _ => false,
        };
        let name_key = Some(DataKey::from_bytes(name_key));
        is_sound.then_some(Self { keys, sealing: *sealing, name_key })
    }
}
