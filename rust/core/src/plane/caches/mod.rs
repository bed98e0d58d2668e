//! Caches of a plane, which works without them too. All planes of the process share one bound:
//! beyond it the planes used longest ago lose their caches.

mod cache;
pub(super) mod table_bytes;

mod joined;

pub(super) mod recent;

pub(super) mod open_segments;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use self::cache::LruCache;
use self::open_segments::OpenSegments;
use self::recent::RecentBlocks;
use crate::model::limits::{CACHES_BYTES_MAX, LABEL_POSTINGS_BYTES_MAX};
use crate::model::raw_keys::RawKeyCache;
use crate::query::labelled::LabelPostings;

/// The caches of a process, and their total bytes.
pub(super) struct Budget {
    bytes_max: usize,
    bytes: AtomicUsize,
    uses: AtomicU64,
    planes: Mutex<Vec<Weak<Caches>>>,
}

/// The budget that all planes of this process share.
static PROCESS: Budget = Budget::new(CACHES_BYTES_MAX);

/// The caches of one plane. Their locks are taken last: a thread that holds one does not read,
/// decode or wait.
pub(super) struct Caches {
    pub(super) open_segments: OpenSegments,
    recent: Mutex<RecentBlocks>,
    /// Lock of the read that joins recent blocks: one read at a time.
    pub(super) joining: Mutex<()>,
    raw_keys: RwLock<RawKeyCache>,
    /// By label.
    pub(super) postings: LruCache<String, LabelPostings>,
    budget: &'static Budget,
    /// Bytes that the budget has counted.
    charged: AtomicUsize,
    /// Number of the last use, counted over all planes.
    used: AtomicU64,
}

impl Budget {
    const fn new(bytes_max: usize) -> Self {
        let planes = Mutex::new(Vec::new());
        Self { bytes_max, bytes: AtomicUsize::new(0), uses: AtomicU64::new(0), planes }
    }

    /// Empties the caches used longest ago until an eighth of the bound is free, so that trimming
    /// is rare. Example: a bound of 256 MiB trims to 224 MiB.
    fn trim(&self) {
        let mut planes: Vec<Arc<Caches>> = {
            let planes = self.planes.lock().unwrap_or_else(PoisonError::into_inner);
            planes.iter().filter_map(Weak::upgrade).collect()
        };
        planes.sort_by_cached_key(|caches| caches.used.load(Ordering::Relaxed));
        for caches in planes {
            if self.bytes.load(Ordering::Relaxed) <= self.bytes_max / 8 * 7 {
                break;
            }
            caches.clear();
        }
    }
}

impl Caches {
    /// Returns empty caches in the budget of this process.
    pub(super) fn new() -> Arc<Self> {
        Self::within(&PROCESS)
    }

    fn within(budget: &'static Budget) -> Arc<Self> {
        let caches = Arc::new(Self {
            open_segments: OpenSegments::default(),
            recent: Mutex::default(),
            joining: Mutex::default(),
            raw_keys: RwLock::default(),
            postings: LruCache::new(LABEL_POSTINGS_BYTES_MAX),
            budget,
            charged: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        });
        let mut planes = budget.planes.lock().unwrap_or_else(PoisonError::into_inner);
        planes.push(Arc::downgrade(&caches));
        caches
    }

    pub(super) fn recent(&self) -> MutexGuard<'_, RecentBlocks> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn raw_keys(&self) -> RwLockReadGuard<'_, RawKeyCache> {
        self.raw_keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn raw_keys_mut(&self) -> RwLockWriteGuard<'_, RawKeyCache> {
        self.raw_keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the bytes that a call added, as the last use. Makes room if there are too many bytes.
    /// The caller holds no lock of a plane.
    pub(super) fn settle(&self) {
        self.used.store(self.budget.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.charge();
        if self.budget.bytes.load(Ordering::Relaxed) > self.budget.bytes_max {
            self.budget.trim();
        }
    }

    fn charge(&self) {
        let names = self.raw_keys().bytes() + self.postings.weight();
        let bytes = self.recent().bytes() + names + self.open_segments.bytes();
        let before = self.charged.swap(bytes, Ordering::Relaxed);
        // The sum may wrap around for a moment if another thread charges the same caches.
        self.budget.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    fn clear(&self) {
        *self.recent() = RecentBlocks::default();
        self.raw_keys_mut().clear();
        self.open_segments.clear();
        self.postings.clear();
        self.charge();
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(*self.charged.get_mut(), Ordering::Relaxed);
        let mut planes = self.budget.planes.lock().unwrap_or_else(PoisonError::into_inner);
        planes.retain(|caches| caches.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::{Block, Column, RowSet, Table, Values};

    fn fill(caches: &Caches, rows: usize) {
        let values = Values::Float(vec![1.0; rows]);
        let columns = vec![Column { field: 1, rows: RowSet::All, values }];
        let table = Table { series: vec![1; rows], times_ns: vec![0; rows], columns };
        let sequence = caches.used.load(Ordering::Relaxed);
        caches.recent().push(sequence, Block { ingest_ns: 0, tables: vec![table] });
        caches.settle();
    }

    #[test]
    fn the_plane_used_longest_ago_gives_up_its_caches() {
        static BUDGET: Budget = Budget::new(110_000);
        let planes: Vec<_> = (0..4).map(|_| Caches::within(&BUDGET)).collect();
        let held = || planes.iter().map(|caches| caches.recent().bytes() > 0).collect::<Vec<_>>();
        planes.iter().take(3).for_each(|caches| fill(caches, 1_500));
        assert_eq!(held(), [true, true, true, false]);
        planes[0].settle();
        fill(&planes[3], 1_500);
        assert_eq!(held(), [true, false, true, true], "1 was used before 2 and 0");
        assert!(BUDGET.bytes.load(Ordering::Relaxed) <= BUDGET.bytes_max);
        // The caches of a plane leave the budget with it.
        drop(planes);
        assert_eq!(BUDGET.bytes.load(Ordering::Relaxed), 0);
        assert!(BUDGET.planes.lock().unwrap().is_empty());
    }

    #[test]
    fn a_plane_alone_has_all_that_its_own_bounds_allow() {
        use crate::model::limits::{
            LABEL_POSTINGS_BYTES_MAX, RAW_KEY_BYTES_MAX, RECENT_BYTES_MAX, SEGMENT_HOURS_BYTES_MAX,
            SEGMENT_INDEX_BYTES_MAX, SEGMENT_PARTS_BYTES_MAX,
        };
        let segments = SEGMENT_INDEX_BYTES_MAX + SEGMENT_PARTS_BYTES_MAX + SEGMENT_HOURS_BYTES_MAX;
        let names = RAW_KEY_BYTES_MAX + LABEL_POSTINGS_BYTES_MAX;
        assert!(RECENT_BYTES_MAX + segments + names <= CACHES_BYTES_MAX);
    }
}
