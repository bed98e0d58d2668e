//! Series by the raw bytes of a measurement and its tags.

use hashbrown::HashTable;

use super::prefix::Prefix;
use crate::model::batch::NEW_SERIES_BASE;
use crate::model::names::{EncodedName, EncodedText, SeriesName};
use crate::model::new_series::{NewEntry, NewSeries};
use crate::model::raw_keys::RawKeyCache;

/// Finds the series of records: series that the cache knows, and series that are new in the batch.
pub(super) struct SeriesFinder<'c> {
    format: u8,
    raw_keys: &'c RawKeyCache,
    /// Series that the cache does not know, in the order of arrival, and their indices.
    new: NewSeries,
    new_index: HashTable<u32>,
    /// Index in `raw_keys` and in `new` of the series that the next record probably has.
    next: usize,
    next_new: usize,
    /// Length of the tags of the last lookup.
    tags_length: usize,
    /// Bytes of names and raw keys that the new series may have.
    bytes_max: usize,
    /// If true, there were more bytes, and the batch must not be stored.
    is_full: bool,
}

/// Hash of a raw key without a known series.
#[derive(Clone, Copy)]
pub(super) struct UnknownKey(u64);

impl<'c> SeriesFinder<'c> {
    pub(super) fn new(format: u8, raw_keys: &'c RawKeyCache, bytes_max: usize) -> Self {
        let (new, new_index) = (NewSeries::default(), HashTable::new());
        Self {
            format,
            raw_keys,
            new,
            new_index,
            next: 0,
            next_new: 0,
            tags_length: 0,
            bytes_max,
            is_full: false,
        }
    }

    /// Returns true if the new series have too many bytes. Series beyond the bound are left out.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Sets another format for raw keys. Call it before the first lookup.
    pub(super) fn set_format(&mut self, format: u8) {
        self.format = format;
    }

    /// Finds the series of `measurement` whose tags have these bytes.
    pub(super) fn find(&mut self, measurement: &str, tags: &[u8]) -> Result<u32, UnknownKey> {
        self.tags_length = tags.len();
        let hash = self.raw_keys.hash(self.format, measurement.as_bytes(), tags);
        let known = self.raw_keys.find(hash, self.format, measurement.as_bytes(), tags);
        if let Some((at, series)) = known {
            self.next = at + 1;
            return Ok(series);
        }
        let is_same = |&at: &u32| {
            let (at, measurement) = (at as usize, measurement.as_bytes());
            self.new.raw_key_hash(at) == hash
                && self.new.get(at).is_some_and(|new| {
                    RawKeyCache::is_key_of(new.raw_key, self.format, measurement, tags)
                })
        };
        let &at = self.new_index.find(hash, is_same).ok_or(UnknownKey(hash))?;
        self.next_new = at as usize + 1;
        Ok(NEW_SERIES_BASE + at)
    }

    /// Returns the length of the tags of the last lookup. The tags of a fleet often have the same
    /// length.
    pub(super) const fn tags_length(&self) -> usize {
        self.tags_length
    }

    /// Returns the beginning of every raw key of `measurement`, for [`Self::find_next`].
    pub(super) fn raw_key_start(&self, measurement: &str) -> Prefix {
        Prefix::new(&RawKeyCache::key_of(self.format, measurement.as_bytes(), b""))
    }

    /// Returns the next series and the length of its tags if `text` begins with these tags. The
    /// next series follows the series found last, and its raw key has this beginning.
    #[inline]
    pub(super) fn find_next(
        &mut self,
        raw_key_start: &Prefix,
        text: &[u8],
    ) -> Option<(u32, usize)> {
        let tags_len = |raw_key: &[u8]| {
            let tags = raw_key.get(raw_key_start.length_in(raw_key)?..)?;
            text.starts_with(tags).then_some(tags.len())
        };
        if let Some((raw_key, series)) = self.raw_keys.get(self.next)
            && let Some(length) = tags_len(raw_key)
        {
            self.next += 1;
            return Some((series, length));
        }
        let at = self.next_new;
        let length = tags_len(self.new.get(at)?.raw_key)?;
        self.next_new += 1;
        Some((number(at), length))
    }

    /// Adds a new series under this unknown raw key. Returns its number, or the last number if
    /// there are too many bytes.
    ///
    /// # Panics
    /// Panics if there are more new series than a batch can have records.
    pub(super) fn add(
        &mut self,
        name: &SeriesName,
        UnknownKey(hash): UnknownKey,
        measurement: &str,
        tags: &[u8],
    ) -> u32 {
        if self.new.bytes() > self.bytes_max {
            self.is_full = true;
            return number(self.new.len() - 1);
        }
        let number = number(self.new.len());
        let Self { new, new_index, format, .. } = self;
        let rehash = |&at: &u32| new.raw_key_hash(at as usize);
        new_index.insert_unique(hash, number - NEW_SERIES_BASE, rehash);
        new.push(name.view(), hash, |raw_key| {
            RawKeyCache::put_key(raw_key, *format, measurement.as_bytes(), tags);
        });
        number
    }

    /// Adds a series as [`Self::add`] does, from an encoded name.
    pub(super) fn add_encoded<'t>(
        &mut self,
        name: EncodedName<'t, impl ExactSizeIterator<Item = (&'t EncodedText, &'t str)>>,
        UnknownKey(hash): UnknownKey,
        tags: &str,
    ) -> u32 {
        let number = number(self.new.len());
        let Self { new, new_index, format, .. } = self;
        let rehash = |&at: &u32| new.raw_key_hash(at as usize);
        new_index.insert_unique(hash, number - NEW_SERIES_BASE, rehash);
        let measurement = name.measurement.as_bytes();
        new.push_encoded(name, hash, |raw_key| {
            RawKeyCache::put_key(raw_key, *format, measurement, tags.as_bytes());
        });
        number
    }

    /// Returns the new series with this number.
    ///
    /// # Panics
    /// Panics if there is no such series.
    pub(super) fn get(&self, number: u32) -> NewEntry<'_> {
        self.new.get((number - NEW_SERIES_BASE) as usize).expect("a number of this batch")
    }

    /// Returns the new series in the order of their numbers.
    pub(super) fn into_new(self) -> NewSeries {
        self.new
    }
}

/// Returns the number that a batch has for its new series at this index.
fn number(at: usize) -> u32 {
    NEW_SERIES_BASE + u32::try_from(at).expect("as many series as records")
}
