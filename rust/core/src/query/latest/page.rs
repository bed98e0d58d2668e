//! A page of the newest samples as JSON, for a person who looks at a few of many entities, and
//! points for a map of them.
//!
//! Example: `first` 40 and `entities_max` 20 are the 41st to the 60th chosen entity.

use std::collections::BTreeMap;

use super::choice::{ChosenEntity, EntityChoice};
use super::entity::EntityWriter;
use super::table::LatestTable;
use super::view::LatestView;
use crate::model::json;
use crate::model::time::SECOND_NS;

/// A part of the entities of a choice, from index `first` on.
pub struct LatestPage<'a> {
    /// The choice.
    pub choice: EntityChoice<'a>,
    /// Number of chosen entities before the page.
    pub first: usize,
    /// Maximum number of entities on the page.
    pub entities_max: usize,
    /// Bytes from which no further entity is written. The first entity is always written.
    pub bytes_max: usize,
}

impl LatestView<'_> {
    /// Returns the page, with the number of entities of each measurement and the number of chosen
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
        let mut writers = BTreeMap::new();
        self.write_part(page, out, |table, chosen, follows, out| {
            let writer = writers
                .entry(chosen.measurement)
                .or_insert_with(|| EntityWriter::new(table, self.catalog));
            if let Some(writer) = writer {
                writer.write(out, chosen.slot, follows);
            }
        })
    }

    /// Returns the page as points: `[measurement, id, seconds since 1970, number, …]` with a number
    /// or `null` for each of `columns`. A column has the first number among the fields that it
    /// names. Example: the columns `[["lat", "latitude"], ["lon"]]` give two numbers.
    #[must_use]
    pub fn points(&self, page: &LatestPage<'_>, columns: &[Vec<&str>]) -> Vec<u8> {
        let mut fields = BTreeMap::new();
        self.write_part(page, b"{\"points\":[".to_vec(), |table, chosen, follows, out| {
            let columns = fields.entry(chosen.measurement).or_insert_with(|| {
                let id = |name: &&str| self.catalog.find_field(chosen.measurement, name);
                let ids =
                    |names: &Vec<&str>| names.iter().filter_map(id).map(|(id, _)| id).collect();
                columns.iter().map(ids).collect::<Vec<Vec<_>>>()
            });
            out.extend_from_slice(if follows { b",[" } else { b"[" });
            json::write_string(out, self.catalog.measurement_name(chosen.measurement));
            out.push(b',');
            json::write_string(out, self.catalog.entity_id(table.entity(chosen.slot)));
            out.push(b',');
            json::write_i64(out, table.time_ns(chosen.slot).div_euclid(SECOND_NS));
            for column in columns {
                out.push(b',');
                match column.iter().find_map(|field| table.number(chosen.slot, *field)) {
                    Some(number) => json::write_f64(out, number),
                    None => out.extend_from_slice(b"null"),
                }
            }
            out.push(b']');
        })
    }

    /// Returns `out` with the entities of the page and the number of all chosen entities. `write`
    /// appends an entity, after a comma if it follows another entity.
    fn write_part<'s>(
        &'s self,
        page: &LatestPage<'_>,
        mut out: Vec<u8>,
        mut write: impl FnMut(&'s LatestTable, ChosenEntity, bool, &mut Vec<u8>),
    ) -> Vec<u8> {
        let chosen = self.chosen(&page.choice);
        let begin = out.len();
        for (index, each) in chosen.iter().skip(page.first).take(page.entities_max).enumerate() {
            if index > 0 && out.len() - begin >= page.bytes_max {
                break;
            }
            if let Some(table) = self.latest.table(each.measurement) {
                write(table, *each, index > 0, &mut out);
            }
        }
        out.extend_from_slice(b"],\"total\":");
        write_count(&mut out, chosen.len());
        out.push(b'}');
        out
    }
}

fn write_count(out: &mut Vec<u8>, count: usize) {
    json::write_i64(out, i64::try_from(count).unwrap_or(i64::MAX));
}
