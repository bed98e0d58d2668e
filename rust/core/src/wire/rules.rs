//! Rules that all wire formats share.

use std::borrow::Cow;

use crate::model::limits::WriteLimits;
use crate::model::names::SeriesName;
use crate::model::time::YEAR_2000_NS;

/// Keys and values of tags.
pub(super) type Tags<'t> = Vec<(Cow<'t, str>, Cow<'t, str>)>;

/// Tags whose value is always the tenant's key, whoever sent them.
pub(super) const TENANT_TAGS: [&str; 3] = ["tenant", "tenant_id", "tenant_key"];

/// Tells whether a record with nothing wrong in it is rejected by itself: it has no fields, or a time
/// that is not stored.
pub(super) fn is_rejected(has_fields: bool, time_ns: Option<i64>) -> bool {
    !has_fields || time_ns.is_some_and(|time_ns| !is_stored(time_ns))
}

/// Tells whether records of this time are stored: of 2000 or later.
pub(super) const fn is_stored(time_ns: i64) -> bool {
    time_ns >= YEAR_2000_NS
}

/// The name of the series of `measurement` and `tags`: tenant tags stamped, tags sorted.
///
/// `None` where the content of the tags refuses the batch: an empty key, or more keys than
/// allowed, stamped ones not counted. `None` also where a key occurs twice, which callers exclude or
/// treat as they must.
pub(super) fn series_name<'t>(
    measurement: &str,
    mut tags: Tags<'t>,
    tenant_key: &'t str,
    limits: &WriteLimits,
) -> Option<SeriesName> {
    let mut stamped_count = 0;
    for (key, value) in &mut tags {
        if key.is_empty() {
            return None;
        }
        if TENANT_TAGS.contains(&&**key) {
            *value = Cow::Borrowed(tenant_key);
            stamped_count += 1;
        }
    }
    if tags.len() - stamped_count > limits.tags_max {
        return None;
    }
    tags.sort_unstable();
    let is_sound = tags.is_sorted_by(|(key, _), (next, _)| key < next);
    is_sound.then(|| SeriesName::new(measurement, &tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(keys: &[&str]) -> Option<SeriesName> {
        let tags = keys.iter().map(|key| ((*key).into(), "sent".into())).collect();
        series_name("link", tags, "acme", &WriteLimits { tags_max: 2, ..WriteLimits::default() })
    }

    #[test]
    fn tags_are_sorted_and_tenant_tags_stamped() {
        let name = name(&["tenants", "tenant_key", "a", "tenant", "tenant_id"]).unwrap();
        let tags: Vec<_> = name.view().tags().collect();
        let stamped = [("tenant", "acme"), ("tenant_id", "acme"), ("tenant_key", "acme")];
        assert_eq!(tags, [&[("a", "sent")], &stamped[..], &[("tenants", "sent")]].concat(), "C15");
    }

    #[test]
    fn content_that_refuses_the_batch() {
        assert!(name(&["a", "b"]).is_some());
        assert!(name(&["a", "b", "c"]).is_none(), "C20");
        assert!(name(&["a", "b", "tenant"]).is_some(), "C21");
        assert!(name(&[""]).is_none(), "C22");
        assert!(name(&["a", "a"]).is_none(), "C8");
    }
}
