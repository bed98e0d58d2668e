//! Series by their bytes: fleets resend the same tags, so a series is found by the very bytes
//! that spelled it, and only a miss is parsed, sorted and looked up by name.

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

use crate::batch::SeriesId;

/// Bytes of remembered spellings above which the cache starts over: protects memory against
/// clients that spell the same tags in ever new ways.
const SPELLING_BYTES_MAX: usize = 64 << 20;

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
    entries: HashTable<Entry>,
    bytes: usize,
}

impl SpellingCache {
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

    /// The series that was inserted under exactly this spelling.
    #[must_use]
    pub fn find(&self, hash: u64, format: u8, measurement: &[u8], tags: &[u8]) -> Option<SeriesId> {
        self.entries
            .find(hash, |entry| {
                entry.hash == hash && spells(&entry.spelling, format, measurement, tags)
            })
            .map(|entry| entry.series)
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
        if self.bytes + spelling.len() > SPELLING_BYTES_MAX {
            self.entries.clear();
            self.bytes = 0;
        }
        self.bytes += spelling.len();
        self.entries.insert_unique(hash, Entry { hash, spelling, series }, |entry| entry.hash);
    }
}

fn unspell(spelling: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&format, rest) = spelling.split_first()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (measurement, tags) = rest.split_at_checked(length)?;
    Some((format, measurement, tags))
}

fn spells(spelling: &[u8], format: u8, measurement: &[u8], tags: &[u8]) -> bool {
    unspell(spelling) == Some((format, measurement, tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(cache: &SpellingCache, format: u8, measurement: &[u8], tags: &[u8]) -> Option<u32> {
        cache.find(cache.hash(format, measurement, tags), format, measurement, tags)
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
    fn the_cache_starts_over_instead_of_growing_without_bound() {
        let mut cache = SpellingCache::default();
        let tags = vec![b'x'; SPELLING_BYTES_MAX / 4];
        for series in 0..8 {
            cache.insert(SpellingCache::spell(b'j', &[series], &tags), u32::from(series));
        }
        assert!(cache.bytes <= SPELLING_BYTES_MAX);
        assert_eq!(find(&cache, b'j', &[7], &tags), Some(7));
    }
}
