//! Series by their bytes: fleets resend the same tags, so a series is found by the very bytes
//! that spelled it, and only a miss is parsed, sorted and looked up by name.

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

use crate::model::names::SeriesId;

/// Bytes of remembered spellings above which the cache starts over: protects memory against
/// clients that spell the same tags in ever new ways.
pub const SPELLING_BYTES_MAX: usize = 64 << 20;

/// Bytes that an entry takes beside its spelling, its share of the table and of the heap included.
const ENTRY_BYTES: usize = size_of::<Entry>() + 32;

struct Entry {
    hash: u64,
    spelling: Box<[u8]>,
    series: SeriesId,
}

/// Map from spelling to stored series. A spelling is whatever byte string a wire format chooses,
/// as long as equal spellings always mean the same measurement and tags of the same tenant.
#[derive(Default)]
pub struct SpellingCache {
    hasher: RandomState,
    /// In the order of their insertion, which is that of some batch: producers send their series in
    /// one order, so the entry behind the one just found is probably the next to be asked for.
    entries: Vec<Entry>,
    /// Indices into `entries`.
    places: HashTable<usize>,
    bytes: usize,
}

impl SpellingCache {
    /// Bytes that the spellings take, with what is kept to find them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Hash of the spelling `format ++ measurement ++ tags`, for [`Self::find`].
    ///
    /// `format` tells wire formats apart, so that their spellings never meet.
    #[must_use]
    pub fn hash(&self, format: u8, measurement: &[u8], tags: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(measurement);
        hasher.write(tags);
        hasher.write_usize(measurement.len() << 8 | usize::from(format));
        hasher.finish()
    }

    /// The series that was inserted under exactly this spelling, and its place for [`Self::at`].
    #[must_use]
    pub fn find(
        &self,
        hash: u64,
        format: u8,
        measurement: &[u8],
        tags: &[u8],
    ) -> Option<(usize, SeriesId)> {
        let spells = |entry: &Entry| {
            entry.hash == hash && Self::spells(&entry.spelling, format, measurement, tags)
        };
        let &place = self.places.find(hash, |&place| spells(&self.entries[place]))?;
        Some((place, self.entries[place].series))
    }

    /// The spelling, as [`Self::spell`] makes it, and the series at a place. Places count from 0;
    /// none outlives the next [`Self::insert`].
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> Option<(&[u8], SeriesId)> {
        self.entries.get(place).map(|entry| (&*entry.spelling, entry.series))
    }

    /// The bytes to hand to [`Self::insert`] once the series has its id.
    #[must_use]
    pub fn spell(format: u8, measurement: &[u8], tags: &[u8]) -> Box<[u8]> {
        let mut spelling = Vec::with_capacity(9 + measurement.len() + tags.len());
        spelling.push(format);
        spelling.extend_from_slice(&(measurement.len() as u64).to_le_bytes());
        spelling.extend_from_slice(measurement);
        spelling.extend_from_slice(tags);
        spelling.into_boxed_slice()
    }

    /// Whether [`Self::spell`] made `spelling` of these.
    #[must_use]
    pub fn spells(spelling: &[u8], format: u8, measurement: &[u8], tags: &[u8]) -> bool {
        unspell(spelling) == Some((format, measurement, tags))
    }

    /// Remembers a spelling made by [`Self::spell`].
    ///
    /// # Panics
    /// When `spelling` was not made by [`Self::spell`].
    pub fn insert(&mut self, spelling: Box<[u8]>, series: SeriesId) {
        let (format, measurement, tags) = unspell(&spelling).expect("spelling made by spell()");
        let hash = self.hash(format, measurement, tags);
        if self.find(hash, format, measurement, tags).is_some() {
            return;
        }
        let bytes = spelling.len() + ENTRY_BYTES;
        if self.bytes + bytes > SPELLING_BYTES_MAX {
            self.entries.clear();
            self.places.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        let Self { entries, places, .. } = self;
        places.insert_unique(hash, entries.len(), |&place| entries[place].hash);
        entries.push(Entry { hash, spelling, series });
    }
}

fn unspell(spelling: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&format, rest) = spelling.split_first()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (measurement, tags) = rest.split_at_checked(length)?;
    Some((format, measurement, tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(cache: &SpellingCache, format: u8, measurement: &[u8], tags: &[u8]) -> Option<u32> {
        let (place, series) =
            cache.find(cache.hash(format, measurement, tags), format, measurement, tags)?;
        let spelling = SpellingCache::spell(format, measurement, tags);
        assert_eq!(cache.at(place), Some((&*spelling, series)));
        Some(series)
    }

    #[test]
    fn a_spelling_is_found_only_as_it_was_spelled() {
        let mut cache = SpellingCache::default();
        cache.insert(SpellingCache::spell(b'j', b"link", br#"{"a":"1"}"#), 7);
        assert_eq!(find(&cache, b'j', b"link", br#"{"a":"1"}"#), Some(7));
        assert_eq!(find(&cache, b'j', b"link", br#"{"a": "1"}"#), None);
        assert_eq!(find(&cache, b'j', b"lin", br#"k{"a":"1"}"#), None);
        assert_eq!(find(&cache, b'p', b"link", br#"{"a":"1"}"#), None);
    }

    #[test]
    fn spellings_stand_in_the_order_of_their_insertion() {
        let mut cache = SpellingCache::default();
        let spelling = |series: u8| SpellingCache::spell(b'j', b"link", &[series]);
        for series in [3, 1, 3, 2, 1] {
            cache.insert(spelling(series), u32::from(series));
        }
        let stand = (0..).map_while(|place| cache.at(place)).map(|(_, series)| series);
        assert_eq!(stand.collect::<Vec<_>>(), [3, 1, 2]);
        assert_eq!(cache.at(1), Some((&*spelling(1), 1)));
    }

    #[test]
    fn the_cache_starts_over_instead_of_growing_without_bound() {
        let mut cache = SpellingCache::default();
        let tags = vec![b'x'; SPELLING_BYTES_MAX / 4];
        for series in 0..8 {
            cache.insert(SpellingCache::spell(b'j', &[series], &tags), u32::from(series));
        }
        assert!(cache.bytes <= SPELLING_BYTES_MAX);
        assert_eq!(cache.entries.len(), cache.places.len());
        assert_eq!(find(&cache, b'j', &[7], &tags), Some(7));
    }
}
