//! The template of the tags of new series: tags of a fleet differ only in their values.

use std::borrow::Cow;
use std::ops::Range;

use crate::model::json;
use crate::model::names::{ENTITY_ID, EncodedName, EncodedText};
use crate::wire::prefix::Prefix;
use crate::wire::rules::{TENANT_TAGS, TagPairs};
use crate::wire::series::{SeriesFinder, UnknownKey};
use crate::wire::tokens::json::Scanner;

/// Templates are given up if more tags than the matches plus this number match no template.
/// Example: after 10 matches and 19 misses.
const MISSES_MAX: usize = 8;

/// Learns how the tags of new series are written.
#[derive(Default)]
pub(super) struct TagsTemplates {
    last: Option<TagsTemplate>,
    hit_count: usize,
    miss_count: usize,
    /// Ranges of the values in the tags that are being read.
    values: Vec<Range<usize>>,
}

/// An object of strings without its values. Its keys are complete and distinct, and their number is
/// allowed.
struct TagsTemplate {
    /// Text before each value.
    texts: Vec<Prefix>,
    /// Text after the last value.
    last: Prefix,
    /// Keys in ascending order.
    keys: Vec<TemplateKey>,
    /// Index in `keys` of the key of the entity.
    entity: Option<usize>,
    /// If true, the keys need no escapes. Values never need escapes.
    are_plain: bool,
}

struct TemplateKey {
    text: EncodedText,
    /// Index of its value. `None` if the value is the tenant's key.
    value: Option<usize>,
}

impl TagsTemplates {
    /// Adds the series of the object `tags` if it matches the template. Returns the number of the
    /// series.
    pub(super) fn add(
        &mut self,
        (measurement, tags): (&str, &str),
        tenant_key: &str,
        unknown: UnknownKey,
        series: &mut SeriesFinder<'_>,
    ) -> Option<u32> {
        let template = self.last.as_ref()?;
        if !template.read(tags, &mut self.values) {
            self.miss_count += 1;
            return None;
        }
        self.hit_count += 1;
        let value = |key: &TemplateKey| match key.value {
            Some(index) => tags.get(self.values[index].clone()).unwrap_or_default(),
            None => tenant_key,
        };
        let name = EncodedName {
            measurement,
            tags: template.keys.iter().map(|key| (&key.text, value(key))),
            entity: template.entity,
            has_plain_tags: template.are_plain && json::is_plain(tenant_key),
        };
        Some(series.add_encoded(name, unknown, tags))
    }

    /// Learns the template of `tags`, which have these pairs and were accepted.
    pub(super) fn learn(&mut self, tags: &str, pairs: &TagPairs<'_>) {
        if self.miss_count <= self.hit_count + MISSES_MAX
            && let Some(template) = TagsTemplate::of(tags, pairs)
        {
            self.last = Some(template);
        }
    }
}

impl TagsTemplate {
    /// Returns the template of these tags, whose keys are distinct. Returns `None` if a value has
    /// escapes.
    fn of(tags: &str, pairs: &TagPairs<'_>) -> Option<Self> {
        let (mut texts, mut keys, mut at) = (Vec::new(), Vec::new(), 0);
        for (index, (key, value)) in pairs.iter().enumerate() {
            let Cow::Borrowed(value) = value else { return None };
            let start = value.as_ptr().addr().checked_sub(tags.as_ptr().addr())?;
            texts.push(Prefix::new(tags.as_bytes().get(at..start)?));
            at = start + value.len();
            let value = (!TENANT_TAGS.contains(&&**key)).then_some(index);
            keys.push((key, value));
        }
        keys.sort_unstable();
        let entity = keys.iter().position(|(key, value)| &***key == ENTITY_ID && value.is_some());
        Some(Self {
            texts,
            last: Prefix::new(tags.as_bytes().get(at..)?),
            are_plain: keys.iter().all(|(key, _)| json::is_plain(key)),
            keys: keys
                .into_iter()
                .map(|(key, value)| TemplateKey { text: EncodedText::new(key), value })
                .collect(),
            entity,
        })
    }

    /// Reads the values of `tags`. Returns false if `tags` does not match.
    fn read(&self, tags: &str, values: &mut Vec<Range<usize>>) -> bool {
        values.clear();
        let mut scan = Scanner::new(tags, 0);
        for text in &self.texts {
            let Some(length) = text.length_in(scan.rest()) else { return false };
            let start = scan.at + length;
            // The text after the value begins with its closing quote.
            scan.at = scan.plain_end(start);
            values.push(start..scan.at);
        }
        self.last.length_in(scan.rest()) == Some(tags.len() - scan.at)
    }
}
