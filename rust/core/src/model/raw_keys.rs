//! Cache from raw bytes to series. Fleets send the same tags again and again, so a series is found
//! by the unchanged bytes of its measurement and tags. Only a miss is parsed, sorted and looked up
//! by name.

use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};

use super::arena::{Arena, ArenaRange};
use super::id_table::IdTable;
use crate::model::limits::RAW_KEY_BYTES_MAX;
use crate::model::names::SeriesId;

/// Bytes of an entry in addition to its raw key. They include its share of the table, half of which
/// may be empty.
const ENTRY_BYTES: usize = size_of::<CachedSeries>() * 3 / 2 + 2 * IdTable::ENTRY_BYTES;

struct CachedSeries {
    raw_key: ArenaRange,
    series: SeriesId,
}

/// Map from raw key to stored series. A raw key consists of the bytes that a wire format has for a
/// measurement and its tags. Within one tenant, equal bytes must always mean the same series.
///
/// Example: `link,a=1,b=2` and `link,b=2,a=1` of line protocol are two raw keys of one series.
#[derive(Default)]
pub struct RawKeyCache {
    hasher: RandomState,
    /// Entries in order of insertion, which is the order of some batch. Producers send their series
    /// in a constant order, so the entry after the last hit is probably the next hit.
    entries: Vec<CachedSeries>,
    raw_keys: Arena,
    /// Indices into `entries`.
    index: IdTable,
}

impl RawKeyCache {
    /// Returns the bytes of the raw keys and of the structures that find them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.raw_keys.bytes() + self.entries.len() * ENTRY_BYTES
    }

    /// Removes all raw keys. Hashes stay valid.
    pub fn clear(&mut self) {
        *self = Self { hasher: self.hasher.clone(), ..Self::default() };
    }

    /// Returns the hash of the raw key of `format`, `measurement` and `tags`, for [`Self::find`].
    ///
    /// `format` separates wire formats, so that their raw keys never collide.
    #[must_use]
    pub fn hash(&self, format: u8, measurement: &[u8], tags: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(measurement);
        hasher.write(tags);
        hasher.write_usize(measurement.len() << 8 | usize::from(format));
        hasher.finish()
    }

    /// Returns the series that was inserted under exactly this raw key, and its index for
    /// [`Self::get`].
    #[must_use]
    pub fn find(
        &self,
        hash: u64,
        format: u8,
        measurement: &[u8],
        tags: &[u8],
    ) -> Option<(usize, SeriesId)> {
        let is_same = |at| Self::is_key_of(self.raw_key(at), format, measurement, tags);
        let at = self.index.find(hash, is_same)? as usize;
        Some((at, self.entries[at].series))
    }

    fn raw_key(&self, at: u32) -> &[u8] {
        self.raw_keys.get(self.entries[at as usize].raw_key)
    }

    /// Returns the raw key, as [`Self::key_of`] makes it, and the series of the entry at an index.
    /// Indices count from 0 and are valid until the next [`Self::insert`].
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(&[u8], SeriesId)> {
        self.entries.get(index).map(|entry| (self.raw_keys.get(entry.raw_key), entry.series))
    }

    /// Appends the bytes that [`Self::insert`] takes when the series has its id.
    pub fn put_key(raw_key: &mut Vec<u8>, format: u8, measurement: &[u8], tags: &[u8]) {
        raw_key.reserve(9 + measurement.len() + tags.len());
        raw_key.push(format);
        raw_key.extend_from_slice(&(measurement.len() as u64).to_le_bytes());
        raw_key.extend_from_slice(measurement);
        raw_key.extend_from_slice(tags);
    }

    /// Returns the bytes that [`Self::put_key`] appends.
    #[must_use]
    pub fn key_of(format: u8, measurement: &[u8], tags: &[u8]) -> Vec<u8> {
        let mut raw_key = Vec::new();
        Self::put_key(&mut raw_key, format, measurement, tags);
        raw_key
    }

    /// Returns the measurement of a raw key that [`Self::key_of`] made.
    #[must_use]
    pub fn measurement_of(raw_key: &[u8]) -> Option<&str> {
        parts_of(raw_key).and_then(|(_, measurement, _)| str::from_utf8(measurement).ok())
    }

    /// Returns true if [`Self::key_of`] made `raw_key` from these parts.
    #[must_use]
    pub fn is_key_of(raw_key: &[u8], format: u8, measurement: &[u8], tags: &[u8]) -> bool {
        parts_of(raw_key) == Some((format, measurement, tags))
    }

    /// Inserts a series under a raw key that [`Self::key_of`] made.
    ///
    /// # Panics
    /// Panics if [`Self::key_of`] did not make `raw_key`.
    pub fn insert(&mut self, raw_key: &[u8], series: SeriesId) {
        let (format, measurement, tags) = parts_of(raw_key).expect("a raw key of key_of()");
        self.insert_hashed(self.hash(format, measurement, tags), raw_key, series);
    }

    /// Inserts a series as [`Self::insert`] does, with the hash of its raw key.
    ///
    /// # Panics
    /// Panics if there are 2^32 raw keys.
    pub fn insert_hashed(&mut self, hash: u64, raw_key: &[u8], series: SeriesId) {
        if self.index.find(hash, |at| self.raw_key(at) == raw_key).is_some() {
            return;
        }
        if self.bytes() + self.raw_keys.bytes_for(raw_key.len()) + ENTRY_BYTES > RAW_KEY_BYTES_MAX {
            self.clear();
        }
        let at = u32::try_from(self.entries.len()).expect("the bytes of raw keys are bounded");
        self.index.insert(hash, at);
        self.entries.push(CachedSeries { raw_key: self.raw_keys.push(raw_key), series });
    }
}

/// Returns format, measurement and tags of a raw key.
fn parts_of(raw_key: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&format, rest) = raw_key.split_first()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (measurement, tags) = rest.split_at_checked(length)?;
    Some((format, measurement, tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(cache: &RawKeyCache, format: u8, measurement: &[u8], tags: &[u8]) -> Option<u32> {
        let (at, series) =
            cache.find(cache.hash(format, measurement, tags), format, measurement, tags)?;
        let raw_key = RawKeyCache::key_of(format, measurement, tags);
        assert_eq!(cache.get(at), Some((&*raw_key, series)));
        Some(series)
    }

    #[test]
    fn a_series_is_found_only_by_its_very_bytes() {
        let mut cache = RawKeyCache::default();
        cache.insert(&RawKeyCache::key_of(b'j', b"link", br#"{"a":"1"}"#), 7);
        assert_eq!(find(&cache, b'j', b"link", br#"{"a":"1"}"#), Some(7));
        assert_eq!(find(&cache, b'j', b"link", br#"{"a": "1"}"#), None);
        assert_eq!(find(&cache, b'j', b"lin", br#"k{"a":"1"}"#), None);
        assert_eq!(find(&cache, b'p', b"link", br#"{"a":"1"}"#), None);
    }

    #[test]
    fn entries_stand_in_the_order_of_their_insertion() {
        let mut cache = RawKeyCache::default();
        let raw_key = |series: u8| RawKeyCache::key_of(b'j', b"link", &[series]);
        for series in [3, 1, 3, 2, 1] {
            cache.insert(&raw_key(series), u32::from(series));
        }
        let stand = (0..).map_while(|at| cache.get(at)).map(|(_, series)| series);
        assert_eq!(stand.collect::<Vec<_>>(), [3, 1, 2]);
        assert_eq!(cache.get(1), Some((&*raw_key(1), 1)));
    }

    #[test]
    fn the_cache_starts_over_instead_of_growing_without_bound() {
        let mut cache = RawKeyCache::default();
        let tags = vec![b'x'; RAW_KEY_BYTES_MAX / 4];
        for series in 0..8 {
            cache.insert(&RawKeyCache::key_of(b'j', &[series], &tags), u32::from(series));
        }
        assert!(cache.bytes() <= RAW_KEY_BYTES_MAX);
        assert_eq!(find(&cache, b'j', &[7], &tags), Some(7));
    }
}
