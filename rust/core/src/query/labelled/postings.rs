//! Finds the series that have some values of one label without a look at all series.

use super::labels::value_of;
use super::matcher::SoughtText;
use crate::model::catalog::Catalog;
use crate::model::names::SeriesId;

/// The series of a catalog that have one label, in the order of their values. Series that came later
/// are not here.
#[derive(Clone, Default)]
pub(crate) struct LabelPostings {
    /// Series with the same value ascend.
    ordered: Vec<SeriesId>,
    /// The first series that is not here.
    end: SeriesId,
}

/// Series that may come later before the others are sorted anew, beside an eighth of the others.
const LATER_MIN: SeriesId = 1_024;

/// An index leaves at most a fourth of its series.
const CANDIDATES_SHARE: usize = 4;

impl LabelPostings {
    /// Returns the bytes of the postings of a label that all series of `catalog` have.
    pub(crate) fn bytes_max(catalog: &Catalog) -> usize {
        size_of::<SeriesId>() * catalog.series_count()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.ordered.as_slice())
    }

    /// Returns postings with all series of `catalog`, or `None` if few are missing. Names may
    /// arrive in any order: as long as an id before others has no name, nothing is added.
    pub(crate) fn extended(&self, label: &str, catalog: &Catalog) -> Option<Self> {
        let end = catalog.series_end();
        if end - self.end <= LATER_MIN + self.end / 8 || catalog.series_count() < end as usize {
            return None;
        }
        let with_value = |id: SeriesId| (value_in(catalog, id, label), id);
        let mut found: Vec<(&str, SeriesId)> = Vec::with_capacity(end as usize);
        found.extend(self.ordered.iter().map(|id| with_value(*id)));
        found.extend((self.end..end).map(with_value).filter(|(value, _)| !value.is_empty()));
        // The series that were here are a run, which only a stable sort finds.
        #[expect(clippy::stable_sort_primitive, reason = "it finds runs")]
        found.sort();
        Some(Self { ordered: found.into_iter().map(|(_, id)| id).collect(), end })
    }

    /// Returns the series that may have a value that is sought, ascending. Returns `None` if they are
    /// so many that a look at all series costs less than to sort them.
    pub(crate) fn candidates(
        &self,
        label: &str,
        sought: &[SoughtText<'_>],
        catalog: &Catalog,
    ) -> Option<Vec<SeriesId>> {
        let mut found = Vec::new();
        for text in sought {
            let value = |id: &SeriesId| value_in(catalog, *id, label);
            let start = self.ordered.partition_point(|id| value(id) < text.text);
            let from = &self.ordered[start..];
            let with_text = &from[..from.partition_point(|id| text.is_in(value(id)))];
            if (found.len() + with_text.len()) * CANDIDATES_SHARE > self.ordered.len() {
                return None;
            }
            found.extend_from_slice(with_text);
        }
        found.sort_unstable();
        found.dedup();
        found.extend(self.end..catalog.series_end());
        Some(found)
    }
}

/// Returns the value of a label. It is empty if the series does not have the label.
fn value_in<'c>(catalog: &'c Catalog, id: SeriesId, label: &str) -> &'c str {
    catalog.series(id).map_or("", |series| value_of(series.name(), label))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::model::names::SeriesName;

    /// Returns the series that may have one of the zones.
    fn in_zones(postings: &LabelPostings, zones: &[&str], catalog: &Catalog) -> Vec<SeriesId> {
        let sought = |text| SoughtText { text, is_prefix: false };
        let sought: Vec<_> = zones.iter().copied().map(sought).collect();
        postings.candidates("zone", &sought, catalog).unwrap()
    }

    /// Adds series with one of 50 zones each. Each tenth has no zone.
    fn add(catalog: &mut Catalog, ids: Range<SeriesId>) {
        for id in ids {
            let (entity, zone) = (id.to_string(), format!("z{}", id % 50));
            let tags = [("entity_id", entity.as_str()), ("zone", zone.as_str())];
            let count = if id % 10 == 0 { 1 } else { 2 };
            catalog.insert_series(id, SeriesName::new("link", &tags[..count]).view());
        }
    }

    #[test]
    fn a_value_leads_to_its_series_and_to_all_that_came_later() {
        let mut catalog = Catalog::default();
        add(&mut catalog, 0..5_000);
        let none = LabelPostings::default();
        let postings = none.extended("zone", &catalog).unwrap();
        assert!(in_zones(&postings, &["z10"], &catalog).is_empty(), "these have no zone");
        let expected: Vec<SeriesId> =
            (0..5_000).filter(|id| [7, 48].contains(&(id % 50))).collect();
        assert_eq!(in_zones(&postings, &["z48", "z7", "z48"], &catalog), expected);
        add(&mut catalog, 5_000..5_010);
        assert!(postings.extended("zone", &catalog).is_none(), "few are missing");
        let expected: Vec<SeriesId> = expected.into_iter().chain(5_000..5_010).collect();
        assert_eq!(in_zones(&postings, &["z7", "z48"], &catalog), expected);
        add(&mut catalog, 5_010..9_000);
        let postings = postings.extended("zone", &catalog).unwrap();
        let expected: Vec<SeriesId> = (0..9_000).filter(|id| id % 50 == 7).collect();
        assert_eq!(in_zones(&postings, &["z7"], &catalog), expected);
        assert!(postings.bytes() <= LabelPostings::bytes_max(&catalog));
    }

    #[test]
    fn a_prefix_leads_to_the_series_of_all_values_that_begin_with_it() {
        let mut catalog = Catalog::default();
        add(&mut catalog, 0..5_000);
        let postings = LabelPostings::default().extended("zone", &catalog).unwrap();
        for prefix in ["", "z", "z4", "z49", "z490", "a", "~"] {
            let zone = |id: &SeriesId| format!("z{}", id % 50);
            let has_zone = |id: &SeriesId| !id.is_multiple_of(10) && zone(id).starts_with(prefix);
            let expected: Vec<SeriesId> = (0..5_000).filter(has_zone).collect();
            let found = [SoughtText { text: prefix, is_prefix: true }];
            let found = postings.candidates("zone", &found, &catalog);
            let is_sorted = expected.len() <= 4_500 / 4;
            assert_eq!(found, is_sorted.then_some(expected), "{prefix}");
        }
    }

    #[test]
    fn a_name_that_arrives_late_is_not_lost() {
        let mut catalog = Catalog::default();
        add(&mut catalog, 0..3_000);
        add(&mut catalog, 3_001..6_000);
        let none = LabelPostings::default();
        assert!(none.extended("zone", &catalog).is_none());
        assert_eq!(in_zones(&none, &["z1"], &catalog).len(), 6_000, "each is tested");
        add(&mut catalog, 3_000..3_001);
        assert!(none.extended("zone", &catalog).is_some());
    }
}
