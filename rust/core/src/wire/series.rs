//! Series by the raw bytes of a measurement and its tags.

use hashbrown::HashTable;

use crate::model::batch::NEW_SERIES_BASE;
use crate::model::names::{EncodedName, EncodedText, SeriesName};
use crate::model::new_series::{NewEntry, NewSeries};
use crate::model::raw_key::{RawDigest, RawKey, RawKeyHasher, RawKeyStart};
use crate::model::raw_keys::RawKeyCache;

/// Finds the series of records: series that the cache knows, and series that are new in the batch.
pub(super) struct SeriesFinder<'c> {
    format: u8,
    hasher: &'static RawKeyHasher,
    raw_keys: &'c RawKeyCache,
    /// Series that the cache does not know, in the order of arrival, and their indices.
    new: NewSeries,
    new_index: HashTable<u32>,
    /// Index in `raw_keys` after the series found last.
    next: usize,
    /// If true, the series found last were next to each other. So the next record probably has the
    /// series at `next`, and a digest of its tags is worth its time.
    is_in_order: bool,
    /// Length of the tags of the last lookup.
    tags_length: usize,
    /// Bytes of names that the new series may have.
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
            hasher: RawKeyHasher::of_process(),
            raw_keys,
            new,
            new_index,
            next: 0,
            is_in_order: false,
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
        let hash = self.hasher.hash(self.format, measurement, tags);
        // Only a raw key with the same hash is worth a digest.
        let is_same = |digest: &RawDigest| *digest == self.digest(measurement, tags);
        if let Some((at, series)) = self.raw_keys.find(hash, is_same) {
            self.is_in_order = at == self.next;
            self.next = at + 1;
            return Ok(series);
        }
        let is_same_new = |&at: &u32| {
            let known = self.new.raw_key(at as usize);
            known.is_some_and(|known| known.hash() == hash && is_same(known.digest()))
        };
        let new = self.new_index.find(hash, is_same_new).copied();
        self.is_in_order = false;
        new.map(|at| NEW_SERIES_BASE + at).ok_or(UnknownKey(hash))
    }

    /// Returns the length of the tags of the last lookup. The tags of a fleet often have the same
    /// length.
    pub(super) const fn tags_length(&self) -> usize {
        self.tags_length
    }

    fn digest(&self, measurement: &str, tags: &[u8]) -> RawDigest {
        self.hasher.digest(self.raw_key_start(measurement), tags)
    }

    /// Returns the beginning of every raw key of `measurement`, for [`Self::find_next`].
    pub(super) fn raw_key_start(&self, measurement: &str) -> RawKeyStart {
        self.hasher.start(self.format, measurement)
    }

    /// Returns the next series and the length of its tags if `text` begins with these tags. The
    /// next series follows the series found last, and its raw key has this beginning.
    #[inline]
    pub(super) fn find_next(
        &mut self,
        raw_key_start: RawKeyStart,
        text: &[u8],
    ) -> Option<(u32, usize)> {
        if !self.is_in_order {
            return None;
        }
        let found = self.raw_keys.begins(self.next, self.hasher, raw_key_start, text)?;
        self.next += 1;
        Some(found)
    }

    /// Adds a new series under this unknown raw key. Returns its number, or the last number if
    /// there are too many bytes.
    ///
    /// # Panics
    /// Panics if there are more new series than a batch can have records.
    pub(super) fn add(
        &mut self,
        name: &SeriesName,
        unknown: UnknownKey,
        measurement: &str,
        tags: &[u8],
    ) -> u32 {
        if self.new.names().len() > self.bytes_max {
            self.is_full = true;
            return number(self.new.len() - 1);
        }
        let raw_key = self.index_next(unknown, measurement, tags);
        self.new.push(name.view(), raw_key);
        number(self.new.len() - 1)
    }

    /// Adds a series as [`Self::add`] does, from an encoded name.
    pub(super) fn add_encoded<'t>(
        &mut self,
        name: EncodedName<'t, impl ExactSizeIterator<Item = (&'t EncodedText, &'t str)>>,
        unknown: UnknownKey,
        tags: &str,
    ) -> u32 {
        let raw_key = self.index_next(unknown, name.measurement, tags.as_bytes());
        self.new.push_encoded(name, raw_key);
        number(self.new.len() - 1)
    }

    /// Enters the next new series into the index. Returns its raw key.
    fn index_next(&mut self, unknown: UnknownKey, measurement: &str, tags: &[u8]) -> RawKey {
        let UnknownKey(hash) = unknown;
        let raw_key = RawKey::new(hash, self.digest(measurement, tags));
        let Self { new, new_index, .. } = self;
        let rehash = |&at: &u32| new.raw_key(at as usize).map_or(hash, RawKey::hash);
        let at = number(new.len()) - NEW_SERIES_BASE;
        new_index.insert_unique(hash, at, rehash);
        raw_key
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
