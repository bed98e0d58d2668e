//! A choice of entities by their names and the values of their newest samples, and its order.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use super::table::LatestTable;
use super::value::ValueRef;
use super::view::LatestView;
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::names::FieldId;

/// Order of chosen entities. Entities with equal keys are sorted by measurement and id.
#[derive(Clone, Copy)]
pub enum EntityOrder<'a> {
    /// By measurement and id.
    Name,
    /// By the time of the newest sample.
    Time,
    /// By the number in a field. Entities without this number come last.
    Field(&'a str),
}

/// Selects entities. Example: the links of region `north` whose `snr_db` is at most 6, the lowest
/// first.
pub struct EntityChoice<'a> {
    /// Measurement, or `None` for all measurements.
    pub measurement: Option<&'a str>,
    /// Text that the ids contain, with ASCII letters in either case. Empty for all ids.
    pub search: &'a str,
    /// The whole id, or `None` for all ids.
    pub entity_id: Option<&'a str>,
    /// Key and value of a tag of the newest sample, or `None` for all tags.
    pub tag: Option<(&'a str, &'a str)>,
    /// Times of newest samples.
    pub times_ns: Range<i64>,
    /// A field and the bounds of its number, or `None` for all fields.
    pub field: Option<(&'a str, RangeInclusive<f64>)>,
    /// Order.
    pub order: EntityOrder<'a>,
    /// If true, the greatest key comes first.
    pub descending: bool,
}

/// An entity of a choice.
#[derive(Clone, Copy)]
pub(super) struct ChosenEntity {
    pub(super) measurement: MeasurementIndex,
    pub(super) slot: u32,
}

impl LatestView<'_> {
    /// Returns all entities of a choice in its order: 24 bytes of memory for each.
    pub(super) fn chosen(&self, choice: &EntityChoice<'_>) -> Vec<ChosenEntity> {
        let mut found: Vec<(Option<f64>, ChosenEntity)> = Vec::new();
        for measurement in self.measurements(choice.measurement) {
            let Some(table) = self.latest.table(measurement) else { continue };
            let id_of = |name| self.catalog.find_field(measurement, name).map(|(id, _)| id);
            let bounded = choice.field.as_ref().map(|(name, bounds)| (id_of(name), bounds));
            let sorted = match choice.order {
                EntityOrder::Field(name) => id_of(name),
                EntityOrder::Name | EntityOrder::Time => None,
            };
            let range_ns = choice.times_ns.start.max(self.range_ns.start)
                ..choice.times_ns.end.min(self.range_ns.end);
            for slot in table.slots_in(range_ns) {
                if !is_named(table, slot, choice, self.catalog) {
                    continue;
                }
                if let Some((field, bounds)) = &bounded
                    && !field
                        .and_then(|field| table.number(slot, field))
                        .is_some_and(|number| bounds.contains(&number))
                {
                    continue;
                }
                let key = sorted.and_then(|field| table.number(slot, field));
                found.push((key, ChosenEntity { measurement, slot }));
            }
        }
        self.sort(&mut found, choice);
        found.into_iter().map(|(_, chosen)| chosen).collect()
    }

    /// Sorts what is sorted by name. The sort is stable.
    fn sort(&self, found: &mut [(Option<f64>, ChosenEntity)], choice: &EntityChoice<'_>) {
        let directed = |order: Ordering| if choice.descending { order.reverse() } else { order };
        match choice.order {
            EntityOrder::Name if choice.descending => found.reverse(),
            EntityOrder::Name => {}
            EntityOrder::Time => {
                let time_ns = |of: &ChosenEntity| {
                    self.latest.table(of.measurement).map(|table| table.time_ns(of.slot))
                };
                found.sort_by(|(_, a), (_, b)| directed(time_ns(a).cmp(&time_ns(b))));
            }
            EntityOrder::Field(_) => found.sort_by(|(a, _), (b, _)| match (a, b) {
                (Some(a), Some(b)) => directed(a.total_cmp(b)),
                _ => b.is_some().cmp(&a.is_some()),
            }),
        }
    }
}

impl LatestTable {
    /// Returns the number in a field of a slot's newest sample. A boolean is 0 or 1.
    pub(super) fn number(&self, slot: u32, field: FieldId) -> Option<f64> {
        match self.values(slot).find(|(id, _)| *id == field)?.1 {
            ValueRef::Float(number) => Some(number),
            ValueRef::Bool(is_set) => Some(f64::from(u8::from(is_set))),
            ValueRef::Text(_) => None,
        }
    }

    fn has_tag(&self, slot: u32, tag: (&str, &str), catalog: &Catalog) -> bool {
        let has = |id| {
            catalog.series(id).is_some_and(|series| series.name().tags().any(|each| each == tag))
        };
        match self.merged.get(&slot) {
            Some(sample) => sample.tag_sets().any(has),
            None => has(self.series[slot as usize]),
        }
    }
}

fn is_named(table: &LatestTable, slot: u32, choice: &EntityChoice<'_>, catalog: &Catalog) -> bool {
    let (id, search) = (catalog.entity_id_bytes(table.entity(slot)), choice.search.as_bytes());
    choice.entity_id.is_none_or(|wanted| wanted.as_bytes() == id)
        && (search.is_empty()
            || id.windows(search.len()).any(|part| part.eq_ignore_ascii_case(search)))
        && choice.tag.is_none_or(|tag| table.has_tag(slot, tag, catalog))
}
