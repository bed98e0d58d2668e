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
    /// Series that `names` does not know, in the order in which they came; and their indices.
    fresh: Vec<Fresh<'a>>,
    fresh_places: HashTable<usize>,
    /// Where in `names` and in `fresh` the series of the next record probably stands.
    next: usize,
    next_fresh: usize,
}

struct Fresh<'a> {
    hash: u64,
    measurement: Cow<'a, str>,
    tags: Cow<'a, [u8]>,
    series: u32,
}

impl<'a, 'c> SeriesFinder<'a, 'c> {
    pub(super) fn new(format: u8, names: &'c SpellingCache) -> Self {
        let (fresh, fresh_places) = (Vec::new(), HashTable::new());
        Self { format, names, fresh, fresh_places, next: 0, next_fresh: 0 }
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
        let &at = self.fresh_places.find(hash, |&at| self.fresh.get(at).is_some_and(spells))?;
        self.next_fresh = at + 1;
        self.fresh.get(at).map(|fresh| fresh.series)
    }

    /// What every spelling of `measurement` begins with, for [`Self::find_next`].
    pub(super) fn head(&self, measurement: &str) -> Prefix {
        Prefix::new(&SpellingCache::spell(self.format, measurement.as_bytes(), b""))
    }

    /// The series of the measurement with this head, and the length of its tags, if `text` begins
    /// with the tags of the series that stands behind the one found before.
    #[inline]
    pub(super) fn find_next(
        &mut self,
        (measurement, head): (&str, &Prefix),
        text: &[u8],
    ) -> Option<(u32, usize)> {
        if let Some((spelling, series)) = self.names.at(self.next)
            && let Some(head_bytes) = head.length_in(spelling)
            && let Some(tags) = spelling.get(head_bytes..)
            && text.starts_with(tags)
        {
            self.next += 1;
            return Some((series, tags.len()));
        }
        let fresh = self.fresh.get(self.next_fresh)?;
        if !text.starts_with(&fresh.tags) || fresh.measurement != measurement {
            return None;
        }
        self.next_fresh += 1;
        Some((fresh.series, fresh.tags.len()))
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
        let Self { fresh, fresh_places, .. } = self;
        let rehash = |&at: &usize| fresh.get(at).map_or(0, |fresh| fresh.hash);
        fresh_places.insert_unique(hash, fresh.len(), rehash);
        fresh.push(Fresh { hash, measurement, tags, series });
        series
    }
}
