//! Verdicts by the values that decided them.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::Deciding;

const VERDICTS_MAX: usize = 4_096;
const ASKED_SLOTS: usize = 8_192;

/// Verdicts of the last seconds. Safe to share between threads.
///
/// The values that decided, keys among them, are held by these verdicts alone. They are compared
/// whole, found by a hash under a secret of this process, and wiped with their verdict.
pub struct Verdicts<V> {
    lifetime: Duration,
    secret: RandomState,
    began_at: Instant,
    /// A part of the hash of what was asked last, and when, by the rest of the hash.
    asked: Box<[AtomicU64]>,
    known: RwLock<HashMap<u64, Known<V>, foldhash::fast::RandomState>>,
}

struct Known<V> {
    values: Zeroizing<Vec<u8>>,
    made_at: Instant,
    verdict: Arc<V>,
}

impl<V> Verdicts<V> {
    /// None yet. Each is forgotten after `lifetime`, whatever it rests on.
    #[must_use]
    pub fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            secret: RandomState::new(),
            began_at: Instant::now(),
            asked: (0..ASKED_SLOTS).map(|_| AtomicU64::new(0)).collect(),
            known: RwLock::default(),
        }
    }

    fn is_fresh(&self, known: &Known<V>, now: Instant) -> bool {
        now.saturating_duration_since(known.made_at) < self.lifetime
    }

    /// The verdict about the same values, if it is not too old.
    pub fn find(&self, deciding: &Deciding<'_>, now: Instant) -> Option<Arc<V>> {
        let hash = self.hash(deciding);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&hash).filter(|found| self.is_fresh(found, now))?;
        if !deciding.is(&found.values) {
            return None;
        }
        self.note_asked(hash, now);
        Some(Arc::clone(&found.verdict))
    }

    /// True where the same was asked within a verdict's lifetime before: one would have been of use, and
    /// may be for the next one. It may be wrong where much else was asked as well.
    pub fn is_asked_again(&self, deciding: &Deciding<'_>, now: Instant) -> bool {
        self.note_asked(self.hash(deciding), now)
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of a hash, and of a time")]
    fn note_asked(&self, hash: u64, now: Instant) -> bool {
        let milliseconds = now.saturating_duration_since(self.began_at).as_millis() as u32;
        let asked = hash >> 32 << 32 | u64::from(milliseconds);
        let before = self.asked[hash as usize % ASKED_SLOTS].swap(asked, Ordering::Relaxed);
        let age = milliseconds.wrapping_sub(before as u32);
        before >> 32 == hash >> 32 && u128::from(age) < self.lifetime.as_millis()
    }

    /// Keeps a verdict, which was made from nothing that is older than `made_at`.
    pub fn remember(&self, deciding: &Deciding<'_>, made_at: Instant, verdict: V) {
        let hash = self.hash(deciding);
        let new = Known { values: deciding.text(), made_at, verdict: Arc::new(verdict) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= VERDICTS_MAX && !known.contains_key(&hash) {
            known.retain(|_, each| self.is_fresh(each, made_at));
            if known.len() >= VERDICTS_MAX {
                known.clear();
            }
        }
        known.insert(hash, new);
    }

    /// Forgets what is too old.
    pub fn tidy(&self, now: Instant) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.values().all(|each| self.is_fresh(each, now)) {
            return;
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, each| self.is_fresh(each, now));
    }

    /// Count of the verdicts that are kept.
    pub fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// True where none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn hash(&self, deciding: &Deciding<'_>) -> u64 {
        let mut hasher = self.secret.build_hasher();
        deciding.hash(&mut hasher);
        hasher.finish()
    }
}
