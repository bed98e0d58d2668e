//! Sets of labels: lookups, and sets that are made from other sets.

use std::collections::BTreeSet;

use fleetcast_core::query::labelled::{Labels, METRIC};

/// Returns the value of a label, or an empty text if the set does not have the label.
pub(crate) fn value<'l>(labels: &'l Labels, name: &str) -> &'l str {
    let at = labels.binary_search_by(|(label, _)| (**label).cmp(name));
    at.map_or("", |at| &labels[at].1)
}

/// Sets a label. An empty value removes the label.
pub(crate) fn set(labels: &mut Labels, name: &str, value: &str) {
    match labels.binary_search_by(|(label, _)| (**label).cmp(name)) {
        Ok(at) if value.is_empty() => drop(labels.remove(at)),
        Ok(at) => labels[at].1 = value.into(),
        Err(_) if value.is_empty() => {}
        Err(at) => labels.insert(at, (name.into(), value.into())),
    }
}

/// Returns the labels without the name of the metric.
pub(crate) fn without_metric(mut labels: Labels) -> Labels {
    set(&mut labels, METRIC, "");
    labels
}

/// The labels that a grouping or a matching looks at.
pub(crate) enum Choice {
    /// Only these labels.
    Only(BTreeSet<String>),
    /// All labels except these and the name of the metric.
    AllBut(BTreeSet<String>),
}

impl Choice {
    /// Returns the chosen labels of a set.
    pub(crate) fn of(&self, labels: &Labels) -> Labels {
        labels.iter().filter(|(label, _)| self.has(label)).cloned().collect()
    }

    fn has(&self, label: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(label),
            Self::AllBut(names) => label != METRIC && !names.contains(label),
        }
    }
}

/// Returns true for a name that a label may have.
pub(crate) fn is_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(is_word) && !text.as_bytes()[0].is_ascii_digit()
}

/// Returns a set as Prometheus writes it. Example: `{job="node", instance="a"}`.
pub(crate) fn written(labels: &Labels) -> String {
    let named = |(label, value): &(Box<str>, Box<str>)| format!("{label}={value:?}");
    format!("{{{}}}", labels.iter().map(named).collect::<Vec<_>>().join(", "))
}
