//! Values used last, within a bound.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared values by key, up to a total weight. The value used longest ago is removed first.
pub(in crate::plane) struct LruCache<K, V> {
    weight_max: usize,
    state: Mutex<LruState<K, V>>,
}

struct LruState<K, V> {
    entries: HashMap<K, LruEntry<V>>,
    weight: usize,
    uses: u64,
}

struct LruEntry<V> {
    value: Arc<V>,
    weight: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V> LruCache<K, V> {
    pub(in crate::plane) fn new(weight_max: usize) -> Self {
        let state = LruState { entries: HashMap::new(), weight: 0, uses: 0 };
        Self { weight_max, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, LruState<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the weight of all kept values.
    pub(in crate::plane) fn weight(&self) -> usize {
        self.lock().weight
    }

    /// Removes all values.
    pub(in crate::plane) fn clear(&self) {
        let mut state = self.lock();
        state.entries = HashMap::new();
        state.weight = 0;
    }

    pub(in crate::plane) fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut state = self.lock();
        state.uses += 1;
        let used = state.uses;
        let entry = state.entries.get_mut(key)?;
        entry.used = used;
        Some(Arc::clone(&entry.value))
    }

    /// Keeps `value`, unless it weighs more than a quarter of the bound.
    pub(in crate::plane) fn put(&self, key: K, value: V, weight: usize) -> Arc<V> {
        let value = Arc::new(value);
        if weight > self.weight_max / 4 {
            return value;
        }
        let mut state = self.lock();
        state.uses += 1;
        let entry = LruEntry { value: Arc::clone(&value), weight, used: state.uses };
        let before = state.entries.insert(key, entry);
        state.weight += weight;
        state.weight -= before.map_or(0, |before| before.weight);
        while state.weight > self.weight_max {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            let gone = state.entries.remove(&key);
            state.weight -= gone.map_or(0, |gone| gone.weight);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let cache = LruCache::new(12);
        for key in 0..4 {
            cache.put(key, key, 3);
        }
        assert_eq!(cache.get(&0).as_deref(), Some(&0));
        cache.put(4, 4, 3);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.get(&0).as_deref(), Some(&0));
        assert_eq!(*cache.put(9, 9, 13), 9);
        assert_eq!(cache.get(&9), None);
        assert_eq!(cache.lock().weight, 12);
    }
}
