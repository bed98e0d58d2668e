//! A page of the newest samples as JSON, for a person who looks at a few of many entities.
//!
//! Example: `first` 40 and `entities_max` 20 are the 41st to the 60th matching entity.

use super::entity::EntityWriter;
use super::table::LatestTable;
use super::view::LatestView;
use crate::model::catalog::Catalog;
use crate::model::json;

/// Selects the entities of a page: the matching entities of `measurement`, or of all measurements,
/// from index `first` on.
pub struct LatestPage<'a> {
    /// Measurement, or `None` for all measurements.
    pub measurement: Option<&'a str>,
    /// Text that the ids contain, with ASCII letters in either case. Empty for all ids.
    pub search: &'a str,
    /// The whole id, or `None` for all ids.
    pub entity_id: Option<&'a str>,
    /// Number of matching entities before the page.
    pub first: usize,
    /// Maximum number of entities on the page.
    pub entities_max: usize,
    /// Bytes from which no further entity is written. The first entity is always written.
    pub bytes_max: usize,
}

impl LatestView<'_> {
    /// Returns the page, with the number of entities of each measurement and the number of matching
    /// entities.
    #[must_use]
    pub fn page(&self, page: &LatestPage<'_>) -> Vec<u8> {
        let mut out = b"{\"measurements\":{".to_vec();
        for (index, measurement) in self.measurements(None).into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_string(&mut out, self.catalog.measurement_name(measurement));
            out.push(b':');
            let count = |table: &LatestTable| table.slots_in(self.range_ns.clone()).count();
            write_count(&mut out, self.latest.table(measurement).map_or(0, count));
        }
        out.extend_from_slice(b"},\"entities\":[");
        let total = self.write_page(page, &mut out);
        out.extend_from_slice(b"],\"total\":");
        write_count(&mut out, total);
        out.push(b'}');
        out
    }

    /// Appends the entities of the page. Returns the number of all matching entities.
    fn write_page(&self, page: &LatestPage<'_>, out: &mut Vec<u8>) -> usize {
        let (mut total, mut written, mut bytes) = (0, 0, 0);
        for measurement in self.measurements(page.measurement) {
            let Some(table) = self.latest.table(measurement) else { continue };
            let Some(mut writer) = EntityWriter::new(table, self.catalog) else { continue };
            for slot in table.slots_in(self.range_ns.clone()) {
                if !is_found(table, slot, page, self.catalog) {
                    continue;
                }
                total += 1;
                let has_room =
                    written < page.entities_max && (written == 0 || bytes < page.bytes_max);
                // An entity without room ends the page. The entities after it are on the next page.
                if total != page.first + written + 1 || !has_room {
                    continue;
                }
                let before = out.len();
                writer.write(out, slot, written > 0);
                bytes += out.len() - before;
                written += 1;
            }
        }
        total
    }
}

fn write_count(out: &mut Vec<u8>, count: usize) {
    json::write_i64(out, i64::try_from(count).unwrap_or(i64::MAX));
}

fn is_found(table: &LatestTable, slot: u32, page: &LatestPage<'_>, catalog: &Catalog) -> bool {
    let (id, search) = (catalog.entity_id_bytes(table.entity(slot)), page.search.as_bytes());
    if page.entity_id.is_some_and(|wanted| wanted.as_bytes() != id) {
        return false;
    }
    search.is_empty() || id.windows(search.len()).any(|part| part.eq_ignore_ascii_case(search))
}
