//! Names of other protocols as they are stored.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use super::rules::TagPairs;
use crate::model::batch::FieldType;
use crate::model::catalog::Catalog;
use crate::model::names::ENTITY_ID;

/// Names for the records of one source: a measurement, or a metric. Example: with the prefix
/// `node_` the field `load1` is stored as `node_load1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Measurement under which they are stored. `None` for the name of the source.
    pub measurement: Option<String>,
    /// Text before the names of their fields.
    pub prefix: String,
    /// Tag that is stored as `entity_id` if the record has no `entity_id`. `None` for the default
    /// tags of the protocol.
    pub entity: Option<String>,
}

/// Rules by the name of the source, and the rule of all other sources.
#[derive(Debug)]
pub struct NameRules {
    /// Differs between all mappings of a process, so that raw keys of one mapping never match
    /// another.
    id: u64,
    rules: HashMap<Box<str>, NamedRule, RandomState>,
    others: NamedRule,
}

#[derive(Debug)]
struct NamedRule {
    /// Name of the source in raw keys.
    key: Box<str>,
    /// Name of the rule in raw keys, for protocols in which all sources of a rule share their
    /// series.
    rule_key: Box<str>,
    rule: Rule,
}

/// Context in which a reader of another protocol reads the bytes of a body.
#[derive(Clone, Copy)]
pub struct Adapter<'c> {
    /// Maps names to stored names.
    pub mapping: &'c NameRules,
    /// Names that are known to be stored.
    pub catalog: &'c Catalog,
}

impl Adapter<'_> {
    /// Returns the type of a field of a measurement, if it is known to be stored.
    pub(super) fn known_type(&self, measurement: &str, field: &str) -> Option<FieldType> {
        let measurement = self.catalog.measurement(measurement)?;
        self.catalog.find_field(measurement, field).map(|(_, field_type)| field_type)
    }
}

static IDS: AtomicU64 = AtomicU64::new(0);

impl NameRules {
    /// Returns a mapping with these rules by source, and `others` for all other sources. If a
    /// source has two rules, the last rule counts.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = (String, Rule)>, others: Rule) -> Self {
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let rules = rules.into_iter().enumerate().map(|(number, (source, rule))| {
            let key = raw_name(id, &source).into();
            let rule_key = format!("{id}#{number}").into();
            (source.into_boxed_str(), NamedRule { key, rule_key, rule })
        });
        let rules = rules.collect();
        let others = NamedRule { key: "".into(), rule_key: format!("{id}#").into(), rule: others };
        Self { id, rules, others }
    }

    /// Returns the rule of a source, and the name of the source in raw keys.
    pub(super) fn find(&self, source: &str) -> (Cow<'_, str>, &Rule) {
        match self.rules.get(source) {
            Some(named) => (Cow::Borrowed(&named.key), &named.rule),
            None => (Cow::Owned(raw_name(self.id, source)), &self.others.rule),
        }
    }

    /// Returns the rule of a source, and the name of the rule in raw keys.
    pub(super) fn find_rule(&self, source: &str) -> (&str, &Rule) {
        let named = self.rules.get(source).unwrap_or(&self.others);
        (&named.rule_key, &named.rule)
    }
}

impl Default for NameRules {
    fn default() -> Self {
        Self::new([], Rule::default())
    }
}

impl Rule {
    /// Returns the measurement of records of `source`.
    pub(super) fn measurement<'n>(&self, source: Cow<'n, str>) -> Cow<'n, str> {
        self.measurement.as_ref().map_or(source, |name| Cow::Owned(name.clone()))
    }

    /// Returns the stored name of a field that is sent as `name`, which is not empty.
    pub(super) fn field<'n>(&self, name: Cow<'n, str>) -> Cow<'n, str> {
        if self.prefix.is_empty() { name } else { Cow::Owned([&self.prefix, &*name].concat()) }
    }

    /// Renames the tag of the entity to `entity_id`, and returns the name that it had. This is the
    /// tag of the rule, or the first tag in `defaults` that has a value.
    pub(super) fn name_entity<'t>(
        &self,
        tags: &mut TagPairs<'t>,
        defaults: &[&str],
    ) -> Option<Cow<'t, str>> {
        if tags.iter().any(|(key, _)| key == ENTITY_ID) {
            return None;
        }
        let own = self.entity.as_deref();
        let names = own.as_ref().map_or(defaults, std::slice::from_ref);
        let has = |name: &&&str| tags.iter().any(|(key, value)| key == **name && !value.is_empty());
        let entity = names.iter().find(has)?;
        let (key, _) = tags.iter_mut().find(|(key, _)| key == entity)?;
        Some(std::mem::replace(key, Cow::Borrowed(ENTITY_ID)))
    }
}

fn raw_name(id: u64, source: &str) -> String {
    format!("{id}/{source}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        Rule {
            measurement: Some("telemetry".into()),
            prefix: "cpu_".into(),
            entity: Some("host".into()),
        }
    }

    fn named(tags: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let mut tags: TagPairs<'_> =
            tags.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        rule().name_entity(&mut tags, &[]);
        tags.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
    }

    #[test]
    fn a_source_has_its_rule_or_that_of_all_others() {
        let mapping = NameRules::new([("cpu".to_owned(), rule())], Rule::default());
        let (_, found) = mapping.find("cpu");
        assert_eq!(found.measurement("cpu".into()), "telemetry");
        assert_eq!(found.field("usage".into()), "cpu_usage");
        let (_, other) = mapping.find("disk");
        assert_eq!(other.measurement("disk".into()), "disk");
        assert_eq!(other.field("usage".into()), "usage");
    }

    #[test]
    fn raw_names_of_sources_and_of_mappings_differ() {
        let rules = || [("cpu".to_owned(), rule())];
        let (one, other) =
            (NameRules::new(rules(), rule()), NameRules::new(rules(), Rule::default()));
        let names =
            [one.find("cpu").0, one.find("disk").0, other.find("cpu").0, other.find("disk").0];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn an_entity_of_its_own_goes_before_the_tag_of_the_rule() {
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(named(&[("host", "a"), ("dc", "x")]), [own("entity_id", "a"), own("dc", "x")]);
        let both = [("entity_id", "e"), ("host", "a")];
        assert_eq!(named(&both), [own("entity_id", "e"), own("host", "a")]);
        assert_eq!(named(&[("dc", "x")]), [own("dc", "x")]);
    }
}
