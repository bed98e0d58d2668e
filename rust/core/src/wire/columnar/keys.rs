//! Finds the series of the keys of rows.

use super::input::InputRows;
use super::tags::{RAW_KEY_FORMAT, TagFault, put_raw, tags_of};
use crate::model::new_series::NewSeries;
use crate::wire::ParseContext;
use crate::wire::rules::series_name;
use crate::wire::series::SeriesFinder;

/// Series of keys.
#[derive(Default)]
pub(super) struct KeySeries {
    /// Number of the series of each key. Any number for a key without an accepted row.
    pub(super) of_key: Vec<u32>,
    /// Series that were not known.
    pub(super) new: NewSeries,
    /// Keys whose tags no series can have, each with its fault.
    pub(super) faults: Vec<(usize, TagFault)>,
    /// If true, some tags refuse the batch.
    pub(super) is_refused: bool,
}

impl KeySeries {
    /// Finds the series of all keys of `rows`. An unknown series becomes a new series if a row of
    /// its key is accepted. `is_wanted` tells this for the index of a key.
    pub(super) fn find(
        rows: &InputRows<'_>,
        is_wanted: impl Fn(usize) -> bool,
        context: ParseContext<'_>,
    ) -> Self {
        let ParseContext { raw_keys, limits, tenant_key, .. } = context;
        let mut finder = SeriesFinder::new(RAW_KEY_FORMAT, raw_keys, usize::MAX);
        let mut found = Self { of_key: Vec::with_capacity(rows.keys.len()), ..Self::default() };
        let mut raw_tags = Vec::new();
        let mut tags = rows.tags.as_slice();
        let mut before = None;
        for (index, key) in rows.keys.iter().enumerate() {
            let tags_start = rows.tags.len() - tags.len();
            let (of_key, rest) = tags.split_at(key.tags_end - tags_start);
            tags = rest;
            put_raw(of_key, &mut raw_tags);
            let measurement = key.measurement.unwrap_or_default();
            let start = match before.take() {
                Some((of, start)) if of == measurement => start,
                _ => finder.raw_key_start(measurement),
            };
            let next = finder.find_next(start, &raw_tags);
            before = Some((measurement, start));
            let known = match next {
                Some((series, length)) if length == raw_tags.len() => Ok(series),
                _ => finder.find(measurement, &raw_tags),
            };
            let series = known.unwrap_or_else(|unknown| {
                let name = match tags_of(&raw_tags) {
                    Ok(tags) => series_name(measurement, tags, tenant_key, limits),
                    Err(fault) => {
                        found.faults.push((index, fault));
                        return 0;
                    }
                };
                found.is_refused |= name.is_none();
                match name {
                    Some(name) if !measurement.is_empty() && is_wanted(index) => {
                        finder.add(&name, unknown, measurement, &raw_tags)
                    }
                    _ => 0,
                }
            });
            found.of_key.push(series);
        }
        found.new = finder.into_new();
        found
    }
}
