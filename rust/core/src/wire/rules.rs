//! Rules that all wire formats share.

use std::borrow::Cow;

use crate::model::limits::WriteLimits;
use crate::model::names::SeriesName;
use crate::model::time::YEAR_2000_NS;

/// Keys and values of tags.
pub(super) type TagPairs<'t> = Vec<(Cow<'t, str>, Cow<'t, str>)>;

/// Tags whose value is always the tenant's key, regardless of the value that was sent.
pub(super) const TENANT_TAGS: [&str; 3] = ["tenant", "tenant_id", "tenant_key"];

/// Returns true if a record without faults is rejected: it has no fields, or its time is not
/// stored.
pub(super) fn is_rejected(has_fields: bool, time_ns: Option<i64>) -> bool {
    !has_fields || time_ns.is_some_and(|time_ns| !is_stored(time_ns))
}

/// Returns true if records of this time are stored: from the year 2000 on.
pub(super) const fn is_stored(time_ns: i64) -> bool {
    time_ns >= YEAR_2000_NS
}

/// Returns the name of the series of `measurement` and `tags`: tenant tags get the tenant's key,
/// and tags are sorted. Example: `b=2,a=1,tenant=x` from the tenant `acme` becomes
/// `a=1,b=2,tenant=acme`.
///
/// Returns `None` if the tags refuse the batch: an empty key, or too many keys (tenant tags do not
/// count). Also returns `None` if a key appears twice, which the caller excludes or handles.
pub(super) fn series_name<'t>(
    measurement: &str,
    mut tags: TagPairs<'t>,
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
