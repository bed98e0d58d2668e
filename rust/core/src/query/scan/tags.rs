//! Tags of rows as maps. The map is built once for each run of rows of one series.

use super::arrays::Texts;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::names::{NameRef, SeriesId};

/// A map from key to value for each row, with ascending keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TagMaps {
    /// Index of the first entry of each row, then the number of all entries.
    pub offsets: Vec<i32>,
    /// Keys of the entries.
    pub keys: Texts,
    /// Values of the entries.
    pub values: Texts,
}

/// Returns the name of a series.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the series has no name.
pub(super) fn name_of(series: SeriesId, catalog: &Catalog) -> Result<NameRef<'_>> {
    let series = catalog.series(series);
    Ok(series.ok_or(Error::Corrupt { what: "a series without a name" })?.name())
}

impl TagMaps {
    /// Returns the tags of the rows of these series.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if a series has no name.
    ///
    /// # Panics
    /// Panics if there are 2 GiB of text or more.
    pub(super) fn of(series: &[SeriesId], catalog: &Catalog) -> Result<Self> {
        let mut maps = Self { offsets: vec![0], keys: Texts::new(), values: Texts::new() };
        for run in series.chunk_by(|a, b| a == b) {
            let name = name_of(run[0], catalog)?;
            let entries: Vec<(&str, &str)> = name.tags().collect();
            repeat(&mut maps.keys, run.len(), || entries.iter().map(|(key, _)| *key));
            repeat(&mut maps.values, run.len(), || entries.iter().map(|(_, value)| *value));
            let count = int(entries.len());
            let end = maps.offsets[maps.offsets.len() - 1];
            maps.offsets.extend((1..=int(run.len())).map(|row| end + row * count));
        }
        Ok(maps)
    }
}

/// Appends some texts `times` times.
fn repeat<'t, I: Iterator<Item = &'t str>>(out: &mut Texts, times: usize, texts: impl Fn() -> I) {
    let start = out.bytes.len();
    let mut lengths: Vec<i32> = Vec::new();
    for text in texts() {
        out.bytes.extend_from_slice(text.as_bytes());
        lengths.push(int(text.len()));
    }
    let end = out.bytes.len();
    out.bytes.reserve((end - start) * (times - 1));
    // Doubles the copied bytes as long as possible, because long copies are fast.
    let wanted = start + (end - start) * times;
    while out.bytes.len() < wanted {
        let copied = (out.bytes.len() - start).min(wanted - out.bytes.len());
        out.bytes.extend_from_within(start..start + copied);
    }
    let mut offset = int(start);
    out.offsets.reserve(lengths.len() * times);
    for _ in 0..times {
        out.offsets.extend(lengths.iter().map(|length| {
            offset += length;
            offset
        }));
    }
    int(out.bytes.len());
}

fn int(length: usize) -> i32 {
    i32::try_from(length).expect("a batch has less text")
}
