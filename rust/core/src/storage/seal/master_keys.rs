//! The master keys that a process knows. There are two while the master key turns.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use zeroize::{Zeroize, Zeroizing};

use super::key::DataKey;
use super::key_file::KEY_FILE;
use super::random::PLANE_ID_LEN;
use super::sealer::{BlobKind, Sealer};
use crate::model::error::{Error, Result};

/// Takes the place of a plane's id in secrets, which belong to no plane.
const SECRETS: [u8; PLANE_ID_LEN] = *b"fleetcast secret";

/// 32 bytes, erased when they are dropped.
pub type MasterKey = Zeroizing<[u8; 32]>;

/// Returns the keys that are in force now, newest first, or `None` if the keys cannot be read.
pub type KeySource = dyn Fn() -> Option<Vec<MasterKey>> + Send + Sync;

/// Master keys, newest first. Clones share them.
#[derive(Clone)]
pub struct MasterKeys(Arc<HeldMasterKeys>);

struct HeldMasterKeys {
    held: RwLock<Vec<MasterKey>>,
    /// `None` for a key that never turns.
    source: Option<Box<KeySource>>,
    /// Instant at which the source was asked last. One thread asks at a time.
    asked_at: Mutex<Option<Instant>>,
}

impl From<&[u8; 32]> for MasterKeys {
    fn from(key: &[u8; 32]) -> Self {
        Self::made(key, None)
    }
}

impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKeys(..)")
    }
}

impl MasterKeys {
    /// Begins with `key`. The keys are asked of `source` when a key does not open what it should.
    #[must_use]
    pub fn following(key: &[u8; 32], source: Box<KeySource>) -> Self {
        Self::made(key, Some(source))
    }

    fn made(key: &[u8; 32], source: Option<Box<KeySource>>) -> Self {
        let held = RwLock::new(vec![Zeroizing::new(*key)]);
        Self(Arc::new(HeldMasterKeys { held, source, asked_at: Mutex::default() }))
    }

    /// Returns true if other keys may come.
    #[must_use]
    pub fn can_turn(&self) -> bool {
        self.0.source.is_some()
    }

    /// Returns the known keys, newest first.
    #[must_use]
    pub fn all(&self) -> Vec<MasterKey> {
        self.0.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the key under which new keys of planes are wrapped.
    ///
    /// # Panics
    /// Never: a key is always known.
    #[must_use]
    pub fn newest(&self) -> MasterKey {
        self.all().swap_remove(0)
    }

    /// Asks the source. Threads that wait for their turn to ask share one answer.
    pub fn renew(&self) {
        let Some(source) = &self.0.source else { return };
        let wanted_at = Instant::now();
        let mut asked_at = self.0.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if asked_at.is_some_and(|at| at >= wanted_at) {
            return;
        }
        *asked_at = Some(Instant::now());
        if let Some(keys) = source().filter(|keys| !keys.is_empty()) {
            *self.0.held.write().unwrap_or_else(PoisonError::into_inner) = keys;
        }
    }

    /// Asks the source if two keys are known: the turn of the master key may be over.
    pub fn forget_old(&self) {
        if self.all().len() > 1 {
            self.renew();
        }
    }

    /// Returns the result of `open` with the key that opens the plane's key file. If no known key
    /// does, the source is asked.
    ///
    /// # Errors
    /// Returns the errors of `open`.
    pub fn open<R>(&self, open: impl Fn(&[u8; 32]) -> Result<R>) -> Result<R> {
        match self.try_all(&open) {
            Err(Error::Corrupt { what: KEY_FILE }) if self.can_turn() => {
                self.renew();
                self.try_all(&open)
            }
            outcome => outcome,
        }
    }

    fn try_all<R>(&self, open: impl Fn(&[u8; 32]) -> Result<R>) -> Result<R> {
        let mut outcome = Err(Error::Corrupt { what: KEY_FILE });
        for key in self.all() {
            outcome = open(&key);
            if !matches!(outcome, Err(Error::Corrupt { what: KEY_FILE })) {
                break;
            }
        }
        outcome
    }
}

/// Seals a secret of the installation under a master key, for its place.
///
/// # Errors
/// Returns [`Error::Io`] if the system has no random bytes.
pub fn seal_secret(master_key: &[u8; 32], place: &str, secret: &[u8; 32]) -> Result<Vec<u8>> {
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), SECRETS);
    sealer.seal_at(BlobKind::Key, place.as_bytes(), secret)
}

/// Opens the bytes that [`seal_secret`] made for this place.
///
/// # Errors
/// Returns [`Error::Corrupt`] for other bytes, another place or another master key.
pub fn open_secret(master_key: &[u8; 32], place: &str, sealed: &[u8]) -> Result<MasterKey> {
    let sealer = Sealer::new(&DataKey::from_bytes(master_key), SECRETS);
    let mut plain = sealer.open_at(BlobKind::Key, place.as_bytes(), sealed)?;
    let secret = plain.as_slice().try_into().map(MasterKey::new);
    plain.zeroize();
    secret.map_err(|_| Error::Corrupt { what: "a sealed secret" })
}
