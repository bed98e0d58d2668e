//! Reads the tags of a record and finds its series.

use super::parser::{LineParser, LineParts};
use crate::model::fault::FaultCode;
use crate::wire::rules::{TENANT_TAGS, TagPairs, series_name};
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::tag;

/// Tag that names the entity if the rule of a line names no tag. Preferred to the first tag by
/// name.
const HOST: &str = "host";

impl<'a> LineParser<'a, '_> {
    /// Returns the series of a record. An unknown series becomes a new series of the batch if the
    /// record is `accepted`. Returns `None` if the record has faults or its tags refuse the batch;
    /// both are noted.
    pub(super) fn series_of(&mut self, parts: &LineParts<'a, '_>, accepted: bool) -> Option<u32> {
        let LineParts { measurement, tags, .. } = parts;
        let unknown = match self.batch.series.find(parts.key(), tags.as_bytes()) {
            Ok(series) => return Some(series),
            Err(unknown) => unknown,
        };
        let mut pairs = self.parse_tags(tags);
        if let Some((_, rule)) = &parts.mapped {
            let first = first_by_name(&pairs);
            rule.name_entity(&mut pairs, &[HOST, first.as_deref().unwrap_or(HOST)]);
        }
        if !self.faults.are_none() {
            return None;
        }
        let name = series_name(measurement, pairs, self.batch.tenant_key, self.batch.limits);
        let Some(name) = name else {
            self.faults.tags_refused = true;
            return None;
        };
        // After the greatest number of records no record is kept.
        if !accepted || !self.is_sound() {
            return None;
        }
        Some(self.batch.series.add(&name, unknown, parts.key(), tags.as_bytes()))
    }

    /// Returns keys and values of `tags`. Notes faults.
    #[cold]
    fn parse_tags(&mut self, tags: &'a str) -> TagPairs<'a> {
        let mut pairs = Vec::new();
        let mut scan = Scanner::new(tags, 0);
        self.keys.clear();
        while scan.take(b',') {
            let Some((key, value)) = tag(&mut scan, self.backslashes) else {
                self.faults.push(0, FaultCode::LineInvalid, self.received, &[]);
                break;
            };
            if self.keys.insert(key.clone()) {
                pairs.push((key, value));
            } else {
                self.faults.push(0, FaultCode::DuplicateKey, self.received, &["tags", &key]);
            }
        }
        pairs
    }
}

/// Returns the key of the first tag, in the order of bytes, that may name an entity. Such a tag has
/// a name and a value, and its value is not replaced by the tenant's key.
fn first_by_name(tags: &TagPairs<'_>) -> Option<String> {
    let may_name = |key: &str, value: &str| {
        !key.is_empty() && !value.is_empty() && !TENANT_TAGS.contains(&key)
    };
    let keys = tags.iter().filter(|(key, value)| may_name(key, value)).map(|(key, _)| &**key);
    keys.min().map(str::to_owned)
}
