//! Finds the series that have a value of one label without a look at all series.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::labels::value_of;
use crate::model::catalog::Catalog;
use crate::model::names::SeriesId;

/// Series of a catalog by their value of one label. Series that came later are not here.
#[derive(Clone, Default)]
pub(crate) struct LabelPostings {
    /// Hash of the value and id of each series that has the label, in order. A hash leads to few
    /// wrong series, and a read tests the labels of what it finds.
    hashed: Vec<(u32, SeriesId)>,
    /// The first series that is not here.
    end: SeriesId,
    hasher: RandomState,
}

/// Series that may come later before the others are sorted anew, beside an eighth of the others.
const LATER_MIN: SeriesId = 1_024;

impl LabelPostings {
    /// Returns the bytes of the postings of a label that all series of `catalog` have.
    pub(crate) fn bytes_max(catalog: &Catalog) -> usize {
        size_of::<(u32, SeriesId)>() * catalog.series_count()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.hashed.as_slice())
    }

    /// Returns postings with all series of `catalog`, or `None` if few are missing. Names may
    /// arrive in any order: as long as an id before others has no name, nothing is added.
    pub(crate) fn extended(&self, label: &str, catalog: &Catalog) -> Option<Self> {
        let end = catalog.series_end();
        if end - self.end <= LATER_MIN + self.end / 8 || catalog.series_count() < end as usize {
            return None;
        }
        let mut hashed = Vec::with_capacity(end as usize);
        hashed.extend_from_slice(&self.hashed);
        for id in self.end..end {
            let value = catalog.series(id).map_or("", |series| value_of(series.name(), label));
            if !value.is_empty() {
                hashed.push((self.hash_of(value), id));
            }
        }
        hashed.sort_unstable();
        hashed.shrink_to_fit();
        Some(Self { hashed, end, hasher: self.hasher.clone() })
    }

    /// Returns the series that may have one of `values`, ascending. No value is empty.
    pub(crate) fn candidates(&self, values: &[&str], catalog: &Catalog) -> Vec<SeriesId> {
        let mut found = Vec::new();
        for value in values {
            let hash = self.hash_of(value);
            let start = self.hashed.partition_point(|(other, _)| *other < hash);
            let equal = self.hashed[start..].iter().take_while(|(other, _)| *other == hash);
            found.extend(equal.map(|(_, id)| *id));
        }
        found.sort_unstable();
        found.dedup();
        found.extend(self.end..catalog.series_end());
        found
    }

    fn hash_of(&self, value: &str) -> u32 {
        let [_, _, _, _, rest @ ..] = self.hasher.hash_one(value).to_le_bytes();
        u32::from_le_bytes(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::model::names::SeriesName;

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
        assert!(postings.candidates(&["z10"], &catalog).is_empty(), "these have no zone");
        let expected: Vec<SeriesId> =
            (0..5_000).filter(|id| [7, 48].contains(&(id % 50))).collect();
        assert_eq!(postings.candidates(&["z48", "z7", "z48"], &catalog), expected);
        add(&mut catalog, 5_000..5_010);
        assert!(postings.extended("zone", &catalog).is_none(), "few are missing");
        let expected: Vec<SeriesId> = expected.into_iter().chain(5_000..5_010).collect();
        assert_eq!(postings.candidates(&["z7", "z48"], &catalog), expected);
        add(&mut catalog, 5_010..9_000);
        let postings = postings.extended("zone", &catalog).unwrap();
        let expected: Vec<SeriesId> = (0..9_000).filter(|id| id % 50 == 7).collect();
        assert_eq!(postings.candidates(&["z7"], &catalog), expected);
        assert!(postings.bytes() <= LabelPostings::bytes_max(&catalog));
    }

    #[test]
    fn a_name_that_arrives_late_is_not_lost() {
        let mut catalog = Catalog::default();
        add(&mut catalog, 0..3_000);
        add(&mut catalog, 3_001..6_000);
        let none = LabelPostings::default();
        assert!(none.extended("zone", &catalog).is_none());
        assert_eq!(none.candidates(&["z1"], &catalog).len(), 6_000, "each is tested");
        add(&mut catalog, 3_000..3_001);
        assert!(none.extended("zone", &catalog).is_some());
    }
}
