//! Tags of rows as maps. The map is built once for each run of rows of one series.

use std::ops::Range;

use super::arrays::{Texts, extend_repeated, range_between, range_of};
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::names::{NameRef, SeriesId};

/// Maps from key to value, with ascending keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TagMaps {
    /// Index of the first entry of each map, then the number of all entries.
    pub offsets: Vec<i32>,
    /// Keys of the entries.
    pub keys: Texts,
    /// Values of the entries.
    pub values: Texts,
}

/// Tags of rows. Neighbouring rows of one series share a map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TagRuns {
    /// Number of rows that share each map.
    pub lengths: Vec<usize>,
    /// A map for each run of rows.
    pub maps: TagMaps,
}

/// Returns the name of a series.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the series has no name.
pub(super) fn name_of(series: SeriesId, catalog: &Catalog) -> Result<NameRef<'_>> {
    let series = catalog.series(series);
    Ok(series.ok_or(Error::Corrupt { what: "a series without a name" })?.name())
}

impl TagRuns {
    /// Returns the tags of the rows of these series.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a series has no name.
    ///
    /// # Panics
    /// Panics if there are 2 GiB of text or more.
    pub(super) fn of(series: &[SeriesId], catalog: &Catalog) -> Result<Self> {
        let mut runs = Self { lengths: Vec::new(), maps: TagMaps::new() };
        for run in series.chunk_by(|a, b| a == b) {
            runs.lengths.push(run.len());
            runs.maps.push(name_of(run[0], catalog)?.tags());
        }
        Ok(runs)
    }

    /// Returns a map for each row.
    ///
    /// # Panics
    /// Panics if there are 2 GiB of text or more.
    #[must_use]
    pub fn by_row(&self) -> TagMaps {
        let mut maps = TagMaps::new();
        for (run, length) in self.lengths.iter().enumerate() {
            let entries = self.maps.entries_of(run);
            repeat(&mut maps.keys, *length, &self.maps.keys, &entries);
            repeat(&mut maps.values, *length, &self.maps.values, &entries);
            let (count, end) = (int(entries.len()), maps.end());
            maps.offsets.extend((1..=int(*length)).map(|row| end + row * count));
        }
        maps
    }
}

impl TagMaps {
    /// Returns an empty list of maps.
    #[must_use]
    pub fn new() -> Self {
        Self { offsets: vec![0], keys: Texts::new(), values: Texts::new() }
    }

    /// Appends a map.
    fn push<'t>(&mut self, tags: impl Iterator<Item = (&'t str, &'t str)>) {
        for (key, value) in tags {
            self.keys.push(key);
            self.values.push(value);
        }
        self.offsets.push(int(self.keys.len()));
    }

    fn end(&self) -> i32 {
        self.offsets[self.offsets.len() - 1]
    }

    /// Returns the indices of the entries of a map.
    ///
    /// # Panics
    /// Panics if there is no such map.
    #[must_use]
    pub fn entries_of(&self, map: usize) -> Range<usize> {
        range_of(&self.offsets, map)
    }
}

/// Appends some texts `times` times.
fn repeat(out: &mut Texts, times: usize, texts: &Texts, of: &Range<usize>) {
    let from = texts.offsets[of.start];
    let bytes = &texts.bytes[range_between(from, texts.offsets[of.end])];
    let (mut first, step) = (int(out.bytes.len()), int(bytes.len()));
    extend_repeated(&mut out.bytes, bytes, times);
    let ends = &texts.offsets[of.start + 1..=of.end];
    out.offsets.reserve(ends.len() * times);
    for _ in 0..times {
        out.offsets.extend(ends.iter().map(|end| first + (end - from)));
        first += step;
    }
    int(out.bytes.len());
}

fn int(length: usize) -> i32 {
    i32::try_from(length).expect("a batch has less text")
}
