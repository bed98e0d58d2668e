//! The master keys that a process knows. There are two while the master key turns.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use zeroize::{Zeroize, Zeroizing};

use super::key::DataKey;
use super::key_file::KEY_FILE;
use super::random::PLANE_ID_LEN;
use super::sealer::{BlobKind, Sealer};
use crate::model::error::{Error, Result};

/// Takes the place of a plane's id in secrets, which belong to no plane.
const SECRETS: [u8; PLANE_ID_LEN] = *b"fleetcast secret";

/// Time for which sealed bytes that no key opened do not make the source asked again.
const UNOPENED_RESTS: Duration = Duration::from_mins(1);

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
    /// Held while a thread asks the source.
    asked: Mutex<SourceInquiries>,
    /// Number of times that other keys became known.
    changes: AtomicU64,
}

/// Questions that the source was asked.
#[derive(Default)]
struct SourceInquiries {
    /// Instant at which the source was asked last.
    at: Option<Instant>,
    /// Hashes of sealed bytes that no known key opened, each with the instant of the answer.
    unopened: HashMap<u64, Instant>,
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
        let (asked, changes) = Default::default();
        Self(Arc::new(HeldMasterKeys { held, source, asked, changes }))
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

    /// Returns a number that is greater after other keys became known.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Asks the source. Threads that wait for their turn to ask share one answer.
    pub fn renew(&self) {
        self.ask(Instant::now(), None);
    }

    /// Asks the source for the key of `sealed` bytes, which no known key opens. If the source has
    /// answered for the same bytes within the last minute, it is not asked: the bytes are damaged.
    /// A turn of the master key changes the bytes.
    pub fn renew_for(&self, sealed: &[u8]) {
        self.ask(Instant::now(), Some(sealed));
    }

    fn ask(&self, wanted_at: Instant, sealed: Option<&[u8]>) {
        let Some(source) = &self.0.source else { return };
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = sealed.map(|sealed| asked.unopened.hasher().hash_one(sealed));
        asked.unopened.retain(|_, at| at.elapsed() < UNOPENED_RESTS);
        let is_unopened = hash.is_some_and(|hash| asked.unopened.contains_key(&hash));
        if is_unopened || asked.at.is_some_and(|at| at >= wanted_at) {
            return;
        }
        asked.at = Some(Instant::now());
        // A source that fails is asked again: a process that missed a turn must learn of it.
        let Some(keys) = source().filter(|keys| !keys.is_empty()) else { return };
        let mut held = self.0.held.write().unwrap_or_else(PoisonError::into_inner);
        if *held != keys {
            *held = keys;
            self.0.changes.fetch_add(1, Ordering::Release);
        }
        asked.unopened.extend(hash.map(|hash| (hash, Instant::now())));
    }

    /// Asks the source if two keys are known: the turn of the master key may be over.
    pub fn forget_old(&self) {
        if self.all().len() > 1 {
            self.renew();
        }
    }

    /// Returns the result of `open` with the key that opens the plane's key file. If no known key
    /// does, the source is asked for the key of `key_file`, as [`Self::renew_for`] does.
    ///
    /// # Errors
    /// Returns the errors of `open` and of `key_file`.
    pub fn open<R>(
        &self,
        key_file: impl Fn() -> Result<Vec<u8>>,
        open: impl Fn(&[u8; 32]) -> Result<R>,
    ) -> Result<R> {
        match self.open_known(&open) {
            Err(Error::Corrupt { what: KEY_FILE }) if self.can_turn() => {
                self.renew_for(&key_file()?);
                self.open_known(&open)
            }
            outcome => outcome,
        }
    }

    /// Returns the result of `open` as [`Self::open`] does, without asking the source.
    ///
    /// # Errors
    /// Returns the errors of `open`.
    pub fn open_known<R>(&self, open: impl Fn(&[u8; 32]) -> Result<R>) -> Result<R> {
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
