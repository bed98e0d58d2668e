//! Labels of a series: its tags and its measurement, in the names that Prometheus allows.
//!
//! Example: the series `link,entity_id=a,rain-rate=3` has the labels `entity_id="a"`,
//! `measurement="link"` and `rain_rate="3"`. A series that came by remote write has the labels that
//! it came with.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::batch::FieldType;
use crate::model::catalog::Catalog;
use crate::model::names::{ENTITY_ID, NameRef};

/// Label of the name of a metric.
pub const METRIC: &str = "__name__";

/// Label of a measurement.
const MEASUREMENT: &str = "measurement";

/// Names and values of labels, ascending by name. Each name occurs once, and no value is empty.
pub type Labels = Vec<(Box<str>, Box<str>)>;

/// Returns the name of the metric that a field is.
#[must_use]
pub fn metric_of(field: &str) -> Cow<'_, str> {
    replaced(field, |byte| is_label_byte(byte) || byte == b':')
}

/// Returns the labels of a series without the name of the metric.
#[must_use]
pub fn labels_of(name: NameRef<'_>) -> Labels {
    let mut labels: Labels = Vec::new();
    for (label, value) in each_label(name) {
        labels.push((label.into(), value.into()));
    }
    labels.sort_by(|one, other| one.0.cmp(&other.0));
    labels.dedup_by(|later, earlier| later.0 == earlier.0);
    labels
}

/// Returns the bytes of labels in memory, without those of the allocator. Example: `job="node"` takes
/// 39 bytes: 7 of texts, and 32 of their places and lengths.
#[must_use]
pub fn label_bytes(labels: &Labels) -> usize {
    let texts = labels.iter().map(|(label, value)| label.len() + value.len());
    size_of_val(&**labels) + texts.sum::<usize>()
}

/// Returns all names of labels in a catalog, or all values of one label.
pub(crate) fn label_texts(catalog: &Catalog, label: Option<&str>) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut add = |text: &str| {
        if !text.is_empty() && !texts.contains(text) {
            texts.insert(text.to_owned());
        }
    };
    if label == Some(METRIC) {
        let fields = catalog.all_fields().map(|(_, field)| field);
        let numeric = fields.filter(|field| field.field_type != FieldType::Text);
        numeric.for_each(|field| add(&metric_of(&field.name)));
        return texts;
    }
    for (_, series) in catalog.all_series() {
        match label {
            None => each_label(series.name()).for_each(|(label, _)| add(&label)),
            Some(label) => add(value_of(series.name(), label)),
        }
    }
    if label.is_none() && !texts.is_empty() {
        texts.insert(METRIC.to_owned());
    }
    texts
}

/// Returns the value of a label of a series. It is empty if the series does not have the label.
pub(super) fn value_of<'n>(name: NameRef<'n>, wanted: &str) -> &'n str {
    let found = each_label(name).find(|(label, _)| label == wanted);
    found.map_or("", |(_, value)| value)
}

/// Visits the labels of a series. If two tags become one label, the first of them counts.
fn each_label(name: NameRef<'_>) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let remote = name.remote_entity();
    let measurement = remote.is_none().then(|| (Cow::Borrowed(MEASUREMENT), name.measurement()));
    let labels = name.tags().map(move |(tag, value)| {
        let label = match remote {
            Some(entity) if tag == ENTITY_ID && !entity.is_empty() => Cow::Borrowed(entity),
            Some(_) => Cow::Borrowed(tag),
            None if tag == MEASUREMENT || tag == METRIC => Cow::Owned(format!("exported_{tag}")),
            None => replaced(tag, is_label_byte),
        };
        (label, value)
    });
    measurement.into_iter().chain(labels.filter(|(_, value)| !value.is_empty()))
}

const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns `text` with `_` for each character that is not allowed.
fn replaced(text: &str, is_allowed: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if text.bytes().all(&is_allowed) {
        return Cow::Borrowed(text);
    }
    let allowed =
        |each: char| u8::try_from(each).is_ok_and(|byte| byte.is_ascii() && is_allowed(byte));
    text.chars().map(|each| if allowed(each) { each } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::SeriesName;

    fn labels(measurement: &str, tags: &[(&str, &str)]) -> String {
        let name = SeriesName::new(measurement, tags);
        let labels = labels_of(name.view());
        for (label, value) in &labels {
            assert_eq!(value_of(name.view(), label), &**value);
        }
        let texts: Vec<String> = labels.iter().map(|(l, v)| format!("{l}={v}")).collect();
        texts.join(",")
    }

    #[test]
    fn labels_are_the_tags_and_the_measurement() {
        assert_eq!(
            labels("link", &[("entity_id", "a"), ("rain-rate", "3")]),
            "entity_id=a,measurement=link,rain_rate=3"
        );
        assert_eq!(
            labels("link", &[("a-b", "1"), ("a.b", "2"), ("empty", "")]),
            "a_b=1,measurement=link"
        );
        assert_eq!(
            labels("link", &[("measurement", "x")]),
            "exported_measurement=x,measurement=link"
        );
    }

    #[test]
    fn a_series_of_remote_write_has_the_labels_that_it_came_with() {
        let tags = [("", "instance"), ("entity_id", "a:9100"), ("job", "node")];
        assert_eq!(labels("telemetry", &tags), "instance=a:9100,job=node");
        assert_eq!(
            labels("telemetry", &[("", ""), ("entity_id", "a"), ("instance", "b")]),
            "entity_id=a,instance=b"
        );
    }

    #[test]
    fn a_metric_has_the_name_of_its_field() {
        assert_eq!(metric_of("job:rate5m"), "job:rate5m");
        assert_eq!(metric_of("snr-dB\u{e9}.x"), "snr_dB__x");
    }
}
