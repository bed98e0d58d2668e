//! From the bytes of a measurement and its tags to a series.

use std::borrow::Cow;

use hashbrown::HashTable;

use super::prefix::Prefix;
use crate::batch::{Batch, NEW_SERIES_BASE, NewSeries, SeriesName};
use crate::spelling::SpellingCache;

/// Finds the series of records: those that the cache knows, and those that are new in the batch.
pub(super) struct SeriesFinder<'a, 'c> {
    format: u8,
    names: &'c SpellingCache,
    /// Where in `names` the series of the next record probably stands.
    next: usize,
    /// Series that `names` does not know.
    fresh: HashTable<Fresh<'a>>,
}

struct Fresh<'a> {
    hash: u64,
    measurement: Cow<'a, str>,
    tags: Cow<'a, [u8]>,
    series: u32,
}

impl<'a, 'c> SeriesFinder<'a, 'c> {
    pub(super) fn new(format: u8, names: &'c SpellingCache) -> Self {
        Self { format, names, next: 0, fresh: HashTable::new() }
    }

    /// The series of `measurement` whose tags are spelled like this.
    pub(super) fn find(&mut self, measurement: &str, tags: &[u8]) -> Option<u32> {
        let hash = self.names.hash(self.format, measurement.as_bytes(), tags);
        let known = self.names.find(hash, self.format, measurement.as_bytes(), tags);
        if let Some((place, series)) = known {
            self.next = place + 1;
            return Some(series);
        }
        let spells = |fresh: &Fresh<'_>| *fresh.tags == *tags && fresh.measurement == measurement;
        self.fresh.find(hash, spells).map(|fresh| fresh.series)
    }

    /// What every spelling of `measurement` begins with, for [`Self::find_next`].
    pub(super) fn head(&self, measurement: &str) -> Prefix {
        Prefix::new(&SpellingCache::spell(self.format, measurement.as_bytes(), b""))
    }

    /// The series of the measurement of `head`, and the length of its tags, if `text` begins with
    /// the tags of the series that stands behind the one found before.
    #[inline]
    pub(super) fn find_next(&mut self, head: &Prefix, text: &[u8]) -> Option<(u32, usize)> {
        let (spelling, series) = self.names.at(self.next)?;
        let tags = spelling.get(head.length_in(spelling)?..)?;
        if !text.starts_with(tags) {
            return None;
        }
        self.next += 1;
        Some((series, tags.len()))
    }

    /// Adds `name` to the new series of `batch`, to be found under this spelling; its number.
    ///
    /// # Panics
    /// When there are more new series than a batch can have records.
    pub(super) fn add(
        &mut self,
        batch: &mut Batch,
        name: SeriesName,
        measurement: Cow<'a, str>,
        tags: Cow<'a, [u8]>,
    ) -> u32 {
        let spelling = SpellingCache::spell(self.format, measurement.as_bytes(), &tags);
        let number = u32::try_from(batch.new_series.len()).expect("as many series as records");
        batch.new_series.push(NewSeries { name, spelling });
        let series = NEW_SERIES_BASE + number;
        let hash = self.names.hash(self.format, measurement.as_bytes(), &tags);
        let fresh = Fresh { hash, measurement, tags, series };
        self.fresh.insert_unique(hash, fresh, |fresh| fresh.hash);
        series
    }
}
