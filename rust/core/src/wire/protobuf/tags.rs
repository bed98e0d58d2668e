//! Reads the `tags` of a record and finds its series.

use std::borrow::Cow;

use super::parser::ProtobufParser;
use crate::model::names::ENTITY_ID;
use crate::wire::key_set::KeySet;
use crate::wire::rules::{TENANT_TAGS, series_name};
use crate::wire::series::UnknownKey;
use crate::wire::tokens::protobuf::{MessageReader, ProtobufResult, TAGS, delimited, text};

/// Fields of a map entry.
const KEY: u32 = delimited(1);
const VALUE: u32 = delimited(2);

/// The tags of a record, each key once.
struct TagMap<'t> {
    pairs: Vec<(&'t str, &'t str)>,
    /// If true, there are more tags than a record may have. `pairs` holds the first tags.
    too_many: bool,
    has_entity_id: bool,
}

impl ProtobufParser<'_, '_> {
    /// Adds a new series to the batch if the record is `accepted`. Returns its number, or the field
    /// that refuses the call.
    #[cold]
    pub(super) fn new_series(
        &mut self,
        measurement: &str,
        tags: &[u8],
        unknown: UnknownKey,
        accepted: bool,
    ) -> ProtobufResult<Result<Option<u32>, &'static str>> {
        let map = read_tags(tags, self.batch.limits.tags_max + TENANT_TAGS.len())?;
        if !self.is_sound() {
            return Ok(Ok(None));
        }
        if !map.has_entity_id {
            return Ok(Err("entity_id"));
        }
        let pairs = map.pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let name = series_name(measurement, pairs, self.batch.tenant_key, self.batch.limits);
        let Some(name) = name.filter(|_| !map.too_many) else {
            return Ok(Err("tags"));
        };
        if !accepted || measurement.is_empty() || self.has_faulty_field() {
            return Ok(Ok(None));
        }
        Ok(Ok(Some(self.batch.series.add(&name, unknown, measurement, tags))))
    }
}

/// Reads entries of `tags`, at most `pairs_max` of them in full.
fn read_tags(entries: &[u8], pairs_max: usize) -> ProtobufResult<TagMap<'_>> {
    let mut map = TagMap { pairs: Vec::new(), too_many: false, has_entity_id: false };
    let mut keys = KeySet::default();
    let mut reader = MessageReader::new(entries);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        debug_assert_eq!(tag, TAGS, "the raw bytes of tags hold entries only");
        let (key, value) = entry(reader.delimited()?)?;
        if key == ENTITY_ID {
            map.has_entity_id = !value.is_empty();
        }
        if map.too_many {
            continue;
        }
        match keys.earlier(Cow::Borrowed(key)) {
            Some(at) => {
                if let Some(pair) = map.pairs.get_mut(at) {
                    pair.1 = value;
                }
            }
            None if map.pairs.len() == pairs_max => map.too_many = true,
            None => map.pairs.push((key, value)),
        }
    }
    Ok(map)
}

fn entry(bytes: &[u8]) -> ProtobufResult<(&str, &str)> {
    let mut reader = MessageReader::new(bytes);
    let (mut key, mut value) = ("", "");
    while !reader.is_empty() {
        match reader.tag()? {
            KEY => key = text(reader.delimited()?)?,
            VALUE => value = text(reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    Ok((key, value))
}
