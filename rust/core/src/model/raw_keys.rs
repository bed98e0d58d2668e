//! Cache from raw keys to series. Fleets send the same tags again and again, so a series is found
//! by the unchanged bytes of its measurement and tags. Only a miss is parsed, sorted and looked up
//! by name.

use super::id_table::IdTable;
use crate::model::limits::RAW_KEY_BYTES_MAX;
use crate::model::names::SeriesId;
use crate::model::raw_key::{RawDigest, RawKey, RawKeyHasher, RawKeyStart};

/// Bytes of an entry. They include its share of the table, half of which may be empty.
const ENTRY_BYTES: usize = size_of::<CachedSeries>() * 3 / 2 + 2 * IdTable::ENTRY_BYTES;

struct CachedSeries {
    digest: RawDigest,
    series: SeriesId,
}

/// Map from raw key to stored series.
///
/// Example: `link,a=1,b=2` and `link,b=2,a=1` of line protocol are two raw keys of one series.
#[derive(Default)]
pub struct RawKeyCache {
    /// Entries in order of insertion, which is the order of some batch. Producers send their series
    /// in a constant order, so the entry after the last hit is probably the next hit.
    entries: Vec<CachedSeries>,
    /// Indices into `entries`.
    index: IdTable,
}

impl RawKeyCache {
    /// Returns the bytes of the entries and of the table that finds them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.len() * ENTRY_BYTES
    }

    /// Removes all raw keys.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the series that was inserted under the raw key with this hash and for whose digest
    /// `is_same` returns true, and its index for [`Self::begins`].
    pub(crate) fn find(
        &self,
        hash: u64,
        is_same: impl Fn(&RawDigest) -> bool,
    ) -> Option<(usize, SeriesId)> {
        let is_same = |at: u32| is_same(&self.entries[at as usize].digest);
        let at = self.index.find(hash, is_same)? as usize;
        Some((at, self.entries[at].series))
    }

    /// Returns the series of the entry at an index and the length of its tags, if `text` begins with
    /// these tags. Indices count from 0 and are valid until the next [`Self::insert`].
    #[inline]
    pub(crate) fn begins(
        &self,
        index: usize,
        hasher: &RawKeyHasher,
        start: RawKeyStart,
        text: &[u8],
    ) -> Option<(SeriesId, usize)> {
        let entry = self.entries.get(index)?;
        Some((entry.series, entry.digest.tags_in(hasher, start, text)?))
    }

    /// Inserts a series under a raw key, unless the key has a series.
    ///
    /// # Panics
    /// Panics if there are 2^32 raw keys.
    pub fn insert(&mut self, raw_key: RawKey, series: SeriesId) {
        let (hash, digest) = (raw_key.hash(), *raw_key.digest());
        if self.find(hash, |known| *known == digest).is_some() {
            return;
        }
        if self.bytes() + ENTRY_BYTES > RAW_KEY_BYTES_MAX {
            self.clear();
        }
        let at = u32::try_from(self.entries.len()).expect("the bytes of raw keys are bounded");
        self.index.insert(hash, at);
        self.entries.push(CachedSeries { digest, series });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(cache: &RawKeyCache, format: u8, measurement: &str, tags: &[u8]) -> Option<u32> {
        let key = RawKey::of(format, measurement, tags);
        let (at, series) = cache.find(key.hash(), |digest| digest == key.digest())?;
        let hasher = RawKeyHasher::of_process();
        let found = cache.begins(at, hasher, hasher.start(format, measurement), tags);
        assert_eq!(found, Some((series, tags.len())));
        Some(series)
    }

    #[test]
    fn a_series_is_found_only_by_its_very_bytes() {
        let mut cache = RawKeyCache::default();
        cache.insert(RawKey::of(b'j', "link", br#"{"a":"1"}"#), 7);
        assert_eq!(find(&cache, b'j', "link", br#"{"a":"1"}"#), Some(7));
        assert_eq!(find(&cache, b'j', "link", br#"{"a": "1"}"#), None);
        assert_eq!(find(&cache, b'j', "lin", br#"k{"a":"1"}"#), None);
        assert_eq!(find(&cache, b'p', "link", br#"{"a":"1"}"#), None);
    }

    #[test]
    fn entries_stand_in_the_order_of_their_insertion() {
        let mut cache = RawKeyCache::default();
        for series in [3, 1, 3, 2, 1] {
            cache.insert(RawKey::of(b'j', "link", &[series]), u32::from(series));
        }
        let hasher = RawKeyHasher::of_process();
        let start = hasher.start(b'j', "link");
        for (at, series) in [3, 1, 2].into_iter().enumerate() {
            let found = cache.begins(at, hasher, start, &[series, b' ']);
            assert_eq!(found, Some((u32::from(series), 1)));
        }
        assert_eq!(cache.begins(3, hasher, start, b""), None);
    }

    #[test]
    fn the_cache_starts_over_instead_of_growing_without_bound() {
        let mut cache = RawKeyCache::default();
        let entries_max = u32::try_from(RAW_KEY_BYTES_MAX / ENTRY_BYTES).unwrap();
        for series in 0..=entries_max {
            cache.insert(RawKey::of(b'j', "link", &series.to_le_bytes()), series);
        }
        assert_eq!(cache.bytes(), ENTRY_BYTES);
        assert_eq!(find(&cache, b'j', "link", &entries_max.to_le_bytes()), Some(entries_max));
        assert_eq!(find(&cache, b'j', "link", &0_u32.to_le_bytes()), None);
    }
}
