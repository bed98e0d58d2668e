//! Compares the newest samples with a map of maps, over rows of many shapes.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use super::value::Value;
use super::{EntityChoice, EntityOrder, Latest, LatestPage, LatestView};
use crate::model::batch::{Column, FieldType, RowSet, Table, Values};
use crate::model::catalog::{Catalog, EntityIndex};
use crate::model::names::{FieldId, SeriesName};

const ALWAYS_NS: Range<i64> = i64::MIN..i64::MAX;
const ENTITIES: u32 = 6;

/// Entity, time, and a value for each field that the row has. Fields 0 to 3 are doubles, 4 and 5
/// booleans, 6 and 7 strings.
type Row = (u32, i64, Vec<(FieldId, u8)>);

fn field_type(field: FieldId) -> FieldType {
    [FieldType::Float, FieldType::Float, FieldType::Bool, FieldType::Text][field as usize / 2]
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let link = catalog.intern_measurement("link");
    for field in 0..8 {
        catalog.insert_field(field, link, &format!("f{}", 7 - field), field_type(field));
    }
    for entity in 0..ENTITIES {
        let id = format!("e{}", ENTITIES - entity);
        catalog.insert_series(entity, SeriesName::new("link", &[("entity_id", &*id)]).view());
    }
    catalog
}

fn value(field: FieldId, seed: u8) -> Value {
    match field_type(field) {
        FieldType::Float => Value::Float(f64::from(seed)),
        FieldType::Bool => Value::Bool(seed.is_multiple_of(2)),
        FieldType::Text => Value::Text(seed.to_string().into()),
    }
}

fn table(rows: &[Row]) -> Table {
    let column = |field: FieldId| {
        let mut present = Vec::new();
        let mut values = Values::new(field_type(field));
        for (row, (_, _, fields)) in (0_u32..).zip(rows) {
            let Some((_, seed)) = fields.iter().find(|(of, _)| *of == field) else { continue };
            present.push(row);
            match (&mut values, value(field, *seed)) {
                (Values::Float(values), Value::Float(value)) => values.push(value),
                (Values::Bool(values), Value::Bool(value)) => values.push(value),
                (Values::Text(values), Value::Text(value)) => values.push(value),
                _ => unreachable!("both have the field's type"),
            }
        }
        let present = if present.len() == rows.len() { RowSet::All } else { RowSet::Some(present) };
        (!values.is_empty()).then_some(Column { field, rows: present, values })
    };
    Table {
        series: rows.iter().map(|row| row.0).collect(),
        times_ns: rows.iter().map(|row| row.1).collect(),
        columns: (0..8).rev().filter_map(column).collect(),
    }
}

/// Time and values of each entity, by entity.
type Samples = BTreeMap<EntityIndex, (i64, BTreeMap<FieldId, Value>)>;

fn samples(latest: &Latest) -> Samples {
    let mut found = Samples::new();
    for (_, table) in latest.tables() {
        for slot in table.slots_in(ALWAYS_NS) {
            let values = table.values(slot).map(|(field, value)| (field, value.into())).collect();
            found.insert(table.entity(slot), (table.time_ns(slot), values));
        }
    }
    found
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let fields = proptest::collection::btree_map(0_u32..8, 0_u8..5, 0..6);
    let fields = fields.prop_map(|fields| fields.into_iter().collect());
    proptest::collection::vec((0..ENTITIES, 0_i64..4, fields), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn g2_f6_samples_are_those_of_a_map_of_maps(
        tables in proptest::collection::vec(rows(), 0..8),
        dropped_ns in 0_i64..4,
    ) {
        let catalog = catalog();
        let mut latest = Latest::default();
        let mut expected = Samples::new();
        for rows in &tables {
            latest.apply(&table(rows), &ALWAYS_NS, &catalog);
            latest.sort(&catalog);
            for (entity, time_ns, fields) in rows {
                let sample = expected.entry(*entity).or_insert((*time_ns, BTreeMap::new()));
                if *time_ns > sample.0 {
                    *sample = (*time_ns, BTreeMap::new());
                }
                if *time_ns == sample.0 {
                    sample.1.extend(fields.iter().map(|(of, seed)| (*of, value(*of, *seed))));
                }
            }
            prop_assert_eq!(&samples(&latest), &expected);
        }
        let mut again = Latest::default();
        for (_, of) in latest.tables() {
            again.apply(&of.rows(|_| true), &ALWAYS_NS, &catalog);
        }
        again.sort(&catalog);
        prop_assert_eq!(&samples(&again), &expected);
        prop_assert!(latest.is_given_by(&again, &catalog) && again.is_given_by(&latest, &catalog));

        let view = LatestView { latest: &latest, catalog: &catalog, range_ns: ALWAYS_NS };
        let (whole, _) = view.begin_entities(b"[", None, usize::MAX);
        for bytes_max in [2, 40, 300] {
            let (mut pieces, mut rest) = view.begin_entities(b"[", None, bytes_max);
            while !rest.is_empty() {
                pieces.extend(rest.next_piece(&catalog, bytes_max));
            }
            prop_assert_eq!(&pieces, &whole);
        }

        latest.retain(|time_ns| time_ns != dropped_ns);
        expected.retain(|_, (time_ns, _)| *time_ns != dropped_ns);
        prop_assert_eq!(&samples(&latest), &expected);
        prop_assert_eq!(latest.newest_ns(None), expected.values().map(|of| of.0).max());
    }
}

#[test]
fn a_page_has_the_entities_that_hold_the_text_from_the_first_on() {
    let mut catalog = catalog();
    let id =
        |entity: u32| format!("{}-{entity}", if entity.is_multiple_of(2) { "UT" } else { "gs" });
    for entity in 0..100 {
        let name = SeriesName::new("station", &[("entity_id", &*id(entity))]);
        catalog.insert_series(ENTITIES + entity, name.view());
    }
    let mut latest = Latest::default();
    let rows: Vec<Row> = (0..100).map(|at| (ENTITIES + at, 7, vec![(0, 1)])).collect();
    latest.apply(&table(&rows), &ALWAYS_NS, &catalog);
    latest.apply(&table(&[(0, 5, vec![(0, 1)])]), &ALWAYS_NS, &catalog);
    latest.sort(&catalog);
    let view = LatestView { latest: &latest, catalog: &catalog, range_ns: ALWAYS_NS };
    let page = |first, entities_max, bytes_max| {
        let (measurement, search) = (Some("station"), "ut-");
        let choice = EntityChoice { measurement, search, ..all() };
        let page = LatestPage { choice, first, entities_max, bytes_max };
        let text = String::from_utf8(view.page(&page)).unwrap();
        assert!(text.starts_with("{\"measurements\":{\"link\":1,\"station\":100},"), "{text}");
        assert!(text.ends_with("],\"total\":50}"), "{text}");
        text
    };
    let mut expected: Vec<String> = (0..100).step_by(2).map(id).collect();
    expected.sort_unstable();
    let mut found = Vec::new();
    for first in (0..60).step_by(15) {
        let text = page(first, 15, usize::MAX);
        found.extend(
            expected
                .iter()
                .filter(|id| text.contains(&format!("\"entity_id\":\"{id}\",\"o")))
                .cloned(),
        );
        assert_eq!(text.matches("observed_at").count(), 15.min(50 - first.min(50)));
    }
    assert_eq!(found, expected);

    // More ids that contain this id come before it than fit on a page.
    let choice = EntityChoice { entity_id: Some("UT-98"), ..all() };
    let one = LatestPage { choice, first: 0, entities_max: 1, bytes_max: usize::MAX };
    let text = String::from_utf8(view.page(&one)).unwrap();
    assert!(text.contains("\"entity_id\":\"UT-98\""), "{text}");
    assert!(text.ends_with("],\"total\":1}"), "{text}");
    // The first entity is always written, but no entity after the bound.
    assert_eq!(page(3, 15, 0).matches("observed_at").count(), 1);
    assert_eq!(page(3, 0, usize::MAX).matches("observed_at").count(), 0);
}

fn all() -> EntityChoice<'static> {
    EntityChoice {
        measurement: None,
        search: "",
        entity_id: None,
        tag: None,
        times_ns: ALWAYS_NS,
        field: None,
        order: EntityOrder::Name,
        descending: false,
    }
}

#[test]
fn entities_are_chosen_by_tag_time_and_number_and_sorted_by_time_or_number() {
    let mut catalog = Catalog::default();
    for (series, (id, region)) in
        (0..).zip([("a", "north"), ("b", "south"), ("c", "north"), ("d", "north")])
    {
        let name = SeriesName::new("link", &[("entity_id", id), ("region", region)]);
        catalog.insert_series(series, name.view());
    }
    let link = catalog.measurement("link").unwrap();
    catalog.insert_field(0, link, "snr_db", FieldType::Float);
    catalog.insert_field(1, link, "lat", FieldType::Float);
    let mut latest = Latest::default();
    let rows = [
        (0, 30, vec![(0, 7), (1, 50)]),
        (1, 10, vec![(0, 9)]),
        (2, 20, vec![(0, 3)]),
        (3, 40, vec![(1, 5)]),
    ];
    latest.apply(&table(&rows), &ALWAYS_NS, &catalog);
    latest.sort(&catalog);
    let view = LatestView { latest: &latest, catalog: &catalog, range_ns: ALWAYS_NS };
    let ids = |choice| {
        let page = LatestPage { choice, first: 0, entities_max: 9, bytes_max: usize::MAX };
        let text = String::from_utf8(view.points(&page, &[])).unwrap();
        text.split("[\"link\",\"").skip(1).map(|part| part[..1].to_owned()).collect::<String>()
    };
    assert_eq!(ids(all()), "abcd");
    assert_eq!(ids(EntityChoice { descending: true, ..all() }), "dcba");
    assert_eq!(ids(EntityChoice { order: EntityOrder::Time, ..all() }), "bcad");
    assert_eq!(ids(EntityChoice { order: EntityOrder::Time, descending: true, ..all() }), "dacb");
    // Entities without the number come last in either direction.
    let by_snr = EntityOrder::Field("snr_db");
    assert_eq!(ids(EntityChoice { order: by_snr, ..all() }), "cabd");
    assert_eq!(ids(EntityChoice { order: by_snr, descending: true, ..all() }), "bacd");
    assert_eq!(ids(EntityChoice { order: EntityOrder::Field("no"), ..all() }), "abcd");
    assert_eq!(ids(EntityChoice { tag: Some(("region", "north")), ..all() }), "acd");
    assert_eq!(ids(EntityChoice { times_ns: 20..40, ..all() }), "ac");
    let low = Some(("snr_db", f64::NEG_INFINITY..=7.0));
    assert_eq!(ids(EntityChoice { field: low, ..all() }), "ac");
    assert_eq!(ids(EntityChoice { field: Some(("no", 0.0..=1.0)), ..all() }), "");

    let page = LatestPage { choice: all(), first: 0, entities_max: 1, bytes_max: usize::MAX };
    let columns = [vec!["latitude", "lat"], vec!["snr_db"], vec!["no"]];
    let text = String::from_utf8(view.points(&page, &columns)).unwrap();
    assert_eq!(text, "{\"points\":[[\"link\",\"a\",0,50.0,7.0,null]],\"total\":4}");
}

#[test]
fn n3_shapes_that_no_sample_has_are_forgotten() {
    let catalog = catalog();
    let mut latest = Latest::default();
    for time_ns in 0..1_000_u32 {
        let fields = (0..8).filter(|field| time_ns >> field & 1 == 1).map(|field| (field, 1));
        let row = (time_ns % ENTITIES, i64::from(time_ns), fields.collect());
        latest.apply(&table(&[row]), &ALWAYS_NS, &catalog);
    }
    let shapes = latest.tables().map(|(_, table)| table.samples.shape_count()).sum::<usize>();
    assert!(shapes <= ENTITIES as usize + 1, "{shapes}");
}
