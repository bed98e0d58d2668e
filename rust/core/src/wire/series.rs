//! Series by the raw bytes of a measurement and its tags.

use hashbrown::HashTable;

use super::prefix::Prefix;
use crate::model::batch::{NEW_SERIES_BASE, NewSeries};
use crate::model::names::SeriesName;
use crate::model::raw_keys::RawKeyCache;

/// Finds the series of records: those that the cache knows, and those that are new in the batch.
pub(super) struct SeriesFinder<'c> {
    format: u8,
    raw_keys: &'c RawKeyCache,
    /// Series that the cache does not know, in the order in which they came; and their indices.
    new: Vec<New>,
    new_index: HashTable<usize>,
    /// Index in `raw_keys` and in `new` of the series that the next record probably has.
    next: usize,
    next_new: usize,
}

struct New {
    hash: u64,
    series: NewSeries,
}

/// Hash of a raw key under which no series is known.
#[derive(Clone, Copy)]
pub(super) struct Unknown(u64);

impl<'c> SeriesFinder<'c> {
    pub(super) fn new(format: u8, raw_keys: &'c RawKeyCache) -> Self {
        let (new, new_index) = (Vec::new(), HashTable::new());
        Self { format, raw_keys, new, new_index, next: 0, next_new: 0 }
    }

    /// The series of `measurement` whose tags are these bytes.
    pub(super) fn find(&mut self, measurement: &str, tags: &[u8]) -> Result<u32, Unknown> {
        let hash = self.raw_keys.hash(self.format, measurement.as_bytes(), tags);
        let known = self.raw_keys.find(hash, self.format, measurement.as_bytes(), tags);
        if let Some((at, series)) = known {
            self.next = at + 1;
            return Ok(series);
        }
        let is_same = |&at: &usize| {
            self.new.get(at).is_some_and(|New { hash: other, series }| {
                let (raw_key, measurement) = (&series.raw_key, measurement.as_bytes());
                hash == *other && RawKeyCache::is_key_of(raw_key, self.format, measurement, tags)
            })
        };
        let &at = self.new_index.find(hash, is_same).ok_or(Unknown(hash))?;
        self.next_new = at + 1;
        Ok(number(at))
    }

    /// Beginning of every raw key of `measurement`, for [`Self::find_next`].
    pub(super) fn raw_key_start(&self, measurement: &str) -> Prefix {
        Prefix::new(&RawKeyCache::key_of(self.format, measurement.as_bytes(), b""))
    }

    /// The series whose raw keys have this beginning, and the length of its tags, if `text` begins
    /// with the tags of the series that stands after the one found before.
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
        let length = tags_len(&self.new.get(at)?.series.raw_key)?;
        self.next_new += 1;
        Some((number(at), length))
    }

    /// Adds a new series, to be found under this raw key, which is unknown; its number.
    ///
    /// # Panics
    /// If there are more new series than a batch can have records.
    pub(super) fn add(
        &mut self,
        name: SeriesName,
        Unknown(hash): Unknown,
        measurement: &str,
        tags: &[u8],
    ) -> u32 {
        let at = self.new.len();
        let raw_key = RawKeyCache::key_of(self.format, measurement.as_bytes(), tags);
        let Self { new, new_index, .. } = self;
        let rehash = |&at: &usize| new.get(at).map_or(0, |new| new.hash);
        new_index.insert_unique(hash, at, rehash);
        new.push(New { hash, series: NewSeries { name, raw_key } });
        number(at)
    }

    /// The new series, by their numbers.
    pub(super) fn into_new(self) -> Vec<NewSeries> {
        self.new.into_iter().map(|new| new.series).collect()
    }
}

/// The number that a batch has for its new series at this index.
fn number(at: usize) -> u32 {
    NEW_SERIES_BASE + u32::try_from(at).expect("as many series as records")
}
