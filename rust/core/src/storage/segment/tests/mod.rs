//! Segments come back as they were written, merged or not, and damage shows.

use std::collections::BTreeMap;

use proptest::prelude::*;

mod pieces;
mod statistics;

use super::block_size::{BLOCK_ROWS_MAX, RowSizes};
use super::*;
use crate::codec::Effort;
use crate::codec::decode_block;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::catalog::Catalog;
use crate::model::error::Result;
use crate::model::names::SeriesName;
use crate::query::latest::Latest;
use crate::storage::seal::{DataKey, Sealer};
use crate::storage::store::{MemoryStore, Store};

const START_NS: i64 = 20_500 * DAY_NS;

fn sealer() -> Sealer {
    Sealer::new(&DataKey::from_bytes(&[1; 32]), [7; 16])
}

/// Series 0 to 9: entities a to d in `link`, d with two tag sets, and the same in `beam`.
fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for id in 0..10_u32 {
        let measurement = if id % 2 == 0 { "link" } else { "beam" };
        let entity = ["a", "b", "c", "d", "d"][id as usize / 2];
        let tags = [("entity_id", entity), ("site", &id.to_string())];
        catalog.insert_series(id, SeriesName::new(measurement, &tags).view());
    }
    catalog
}

/// A row: series, time, value of field 1 if any, and a number that identifies the row.
type Row = (u32, i64, Option<f64>, f64);

fn table(rows: &[Row]) -> Table {
    let present = (0_u32..).zip(rows).filter_map(|(at, row)| Some((at, row.2?)));
    let (kept, values): (Vec<u32>, Vec<f64>) = present.unzip();
    let kept = if kept.len() == rows.len() { RowSet::All } else { RowSet::Some(kept) };
    let mut columns = vec![Column {
        field: 2,
        rows: RowSet::All,
        values: Values::Float(rows.iter().map(|row| row.3).collect()),
    }];
    if !values.is_empty() {
        columns.insert(0, Column { field: 1, rows: kept, values: Values::Float(values) });
    }
    let mut few: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for (at, row) in (0..).zip(rows) {
        if let Some(field) = few_field(row) {
            few.entry(field).or_default().push((at, row.3));
        }
    }
    for (field, values) in few {
        let (rows, values) = values.into_iter().unzip();
        columns.push(Column { field, rows: RowSet::Some(rows), values: Values::Float(values) });
    }
    Table {
        series: rows.iter().map(|row| row.0).collect(),
        times_ns: rows.iter().map(|row| row.1).collect(),
        columns,
    }
}

/// Returns the field of a row in five, which few rows share. Its value is the number of the row.
fn few_field(row: &Row) -> Option<u32> {
    (0..64).find(|at| f64::from(at * 5).total_cmp(&(row.3 % 320.0)).is_eq()).map(|at| 10 + at)
}

/// Returns the value of a field in a row.
fn value(table: &Table, field: u32, row: usize) -> Option<f64> {
    let column = table.columns.iter().find(|column| column.field == field)?;
    let Values::Float(values) = &column.values else { return None };
    let indices = column.rows.within(&(row..row + 1));
    values[indices].first().copied()
}

/// Returns the rows of a table. A missing value of field 2 is -1.
fn rows(table: &Table) -> Vec<Row> {
    let row = |at: usize| {
        let number = value(table, 2, at).unwrap_or(-1.0);
        (table.series[at], table.times_ns[at], value(table, 1, at), number)
    };
    (0..table.row_count()).map(row).collect()
}

/// Returns the [`rows`] of a table, and checks their fields against [`few_field`].
fn whole_rows(table: &Table) -> Vec<Row> {
    let rows = rows(table);
    let mut few = 0;
    for (at, row) in rows.iter().enumerate() {
        if let Some(field) = few_field(row) {
            assert_eq!(value(table, field, at), Some(row.3));
            few += 1;
        }
    }
    let of_few = table.columns.iter().filter(|column| column.field >= 10);
    assert_eq!(of_few.map(|column| column.values.len()).sum::<usize>(), few);
    rows
}

/// Sorts rows in write order into the order of segments.
fn in_order(rows: &[Row], representatives: &Representatives) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| (row.0 % 2 == 0, representatives.representative(row.0).unwrap(), row.1));
    rows
}

fn write(
    store: &MemoryStore,
    representatives: &Representatives,
    written: &[Row],
) -> (Segment, SegmentSummary) {
    let mut writer =
        SegmentWriter::begin(store, &sealer(), representatives, 5, Effort::High).unwrap();
    for parity in [1, 0] {
        let of: Vec<Row> = written.iter().copied().filter(|row| row.0 % 2 == parity).collect();
        let of = sorted(&[RowSpan::whole(&table(&of))], representatives).unwrap();
        writer.push(&[RowSpan::whole(&of)]).unwrap();
        writer.end_measurement().unwrap();
    }
    let done = writer.finish().unwrap();
    (Segment::open(store, &sealer(), &done.id, done.bytes).unwrap(), done)
}

fn read(store: &MemoryStore, segment: &Segment) -> Vec<Row> {
    let blocks = 0..segment.blocks().len();
    let tables = blocks.flat_map(|at| segment.block(store, at).unwrap().tables);
    tables.flat_map(|table| whole_rows(&table)).collect()
}

fn written_rows() -> impl Strategy<Value = Vec<Row>> {
    let value = proptest::option::of((-50_i32..50).prop_map(|at| f64::from(at) / 10.0));
    proptest::collection::vec((0_u32..10, 0_i64..40, value), 0..400).prop_map(|rows| {
        let number = (0_u32..).map(f64::from);
        let row = |((series, minute, value), number): ((u32, i64, Option<f64>), f64)| {
            (series, START_NS + minute * 600_000_000_000, value, number)
        };
        rows.into_iter().zip(number).map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// F4, F6, H27: rows with the same entity and time stay in write order.
    #[test]
    fn rows_come_back_in_order_from_one_segment_and_from_a_merge(
        parts in proptest::collection::vec(written_rows(), 1..4),
    ) {
        let representatives = Representatives::new(&catalog());
        let store = MemoryStore::default();
        let segments: Vec<Segment> =
            parts.iter().map(|part| write(&store, &representatives, part).0).collect();
        for (segment, part) in segments.iter().zip(&parts) {
            prop_assert_eq!(read(&store, segment), in_order(part, &representatives));
        }
        let mut writer = SegmentWriter::begin(&store, &sealer(), &representatives, 5, Effort::High).unwrap();
        let inputs: Vec<&Segment> = segments.iter().collect();
        merge(&store, &representatives, &inputs, all, &mut writer).unwrap();
        let done = writer.finish().unwrap();
        let merged = Segment::open(&store, &sealer(), &done.id, done.bytes).unwrap();
        prop_assert_eq!(read(&store, &merged), in_order(&parts.concat(), &representatives));
        prop_assert_eq!(done.rows, parts.concat().len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// F4, F6: compaction keeps the same newest rows that all rows in write order give, also with
    /// more tables than are sorted together.
    #[test]
    fn many_tables_become_one_in_order(
        parts in proptest::collection::vec(written_rows(), 1..4),
        cut in 1_usize..8,
    ) {
        let catalog = catalog();
        let representatives = Representatives::new(&catalog);
        let written: Vec<Row> =
            parts.concat().into_iter().filter(|row| row.0 % 2 == 0).collect();
        let tables: Vec<Table> = written.chunks(cut).map(table).collect();
        let spans: Vec<RowSpan<'_>> = tables.iter().map(RowSpan::whole).collect();
        let sorted = sorted(&spans, &representatives).unwrap();
        prop_assert_eq!(whole_rows(&sorted), in_order(&written, &representatives));

        let (mut of_all, mut of_newest) = (Latest::default(), Latest::default());
        for table in &tables {
            of_all.apply(table, &(i64::MIN..i64::MAX), &catalog);
        }
        let newest = newest(&sorted, &representatives).unwrap();
        of_newest.apply(&newest, &(i64::MIN..i64::MAX), &catalog);
        let kept = |latest: &Latest| {
            let tables = latest.tables().map(|(_, table)| table.rows(|_| true));
            let mut kept: Vec<Row> = tables.flat_map(|table| rows(&table)).collect();
            kept.sort_by_key(|row| (row.0, row.1));
            kept
        };
        prop_assert_eq!(kept(&of_newest), kept(&of_all));
    }

    #[test]
    fn days_share_out_the_rows_of_a_table_in_their_order(
        days in proptest::collection::vec(0_i64..3, 0..50),
    ) {
        let written: Vec<Row> = (0_i64..)
            .zip(&days)
            .map(|(at, day)| (0, START_NS + day * DAY_NS + at, (at % 3 > 0).then_some(1.0), 0.5))
            .collect();
        let table = table(&written);
        let parts = split_by_day(&table);
        prop_assert!(parts.is_sorted_by(|a, b| a.0 < b.0));
        prop_assert_eq!(parts.iter().map(|(_, part)| part.row_count()).sum::<usize>(), days.len());
        for (day, part) in parts {
            let of_day = written.iter().filter(|row| day_of(row.1) == day);
            prop_assert_eq!(whole_rows(&part), of_day.copied().collect::<Vec<_>>());
        }
    }
}

/// Enough rows of two entities that blocks are cut inside an entity, also at a single instant.
fn many_rows(seed: f64) -> Vec<Row> {
    let rows = 0..30_000_i32;
    rows.map(|at| {
        let series = if at % 3 == 0 { 0 } else { 8 };
        let step = if at < 20_000 { at / 4 } else { 5_000 };
        (
            series,
            START_NS + i64::from(step) * 1_000_000_000,
            Some(f64::from(at % 700) / 10.0),
            seed + f64::from(at),
        )
    })
    .collect()
}

#[test]
fn entities_that_span_blocks_merge_in_write_order() {
    let representatives = Representatives::new(&catalog());
    let store = MemoryStore::default();
    let parts = [many_rows(0.0), many_rows(100_000.0)];
    let segments = parts.each_ref().map(|part| write(&store, &representatives, part).0);
    assert!(segments[0].blocks().len() > 2);
    let mut writer =
        SegmentWriter::begin(&store, &sealer(), &representatives, 5, Effort::High).unwrap();
    merge(&store, &representatives, &segments.each_ref(), all, &mut writer).unwrap();
    let done = writer.finish().unwrap();
    let merged = Segment::open(&store, &sealer(), &done.id, done.bytes).unwrap();
    assert!(merged.blocks().iter().all(|block| block.rows <= BLOCK_ROWS_MAX));
    assert!(read(&store, &merged) == in_order(&parts.concat(), &representatives));
}

/// Keeps all rows in a merge.
fn all(_: usize, table: Table) -> Table {
    table
}

/// Values are sorted, sliced, counted, merged and stored, but never empty cells: rows times columns
/// are 6.4 thousand million in the merged segment.
#[test]
fn n3_rows_of_thousands_of_fields_cost_their_values() {
    const FIELDS: u32 = 80_000;
    let representatives = Representatives::new(&catalog());
    let store = MemoryStore::default();
    let written = |first: u32| -> (Table, Segment) {
        let rows: Vec<Row> = (0..20_000_u32)
            .map(|at| (at % 2 * 2, START_NS + i64::from(at) * 1_000_000_000, None, f64::from(at)))
            .collect();
        let mut table = table(&rows);
        table.columns.retain(|column| column.field < 10);
        table.columns.extend((0..FIELDS).map(|at| Column {
            field: 100 + first + at,
            // Twenty rows of 4,000 fields each.
            rows: RowSet::Some(vec![at / 4_000 * 1_000 + first]),
            values: Values::Float(vec![f64::from(at)]),
        }));
        let table = sorted(&[RowSpan::whole(&table)], &representatives).unwrap();
        let mut writer =
            SegmentWriter::begin(&store, &sealer(), &representatives, 5, Effort::High).unwrap();
        writer.write_measurement(&[RowSpan::whole(&table)], |_| Ok(())).unwrap();
        let done = writer.finish().unwrap();
        (table, Segment::open(&store, &sealer(), &done.id, done.bytes).unwrap())
    };
    let (parts, segments): (Vec<Table>, Vec<Segment>) = [0, 1].map(written).into_iter().unzip();
    let mut writer =
        SegmentWriter::begin(&store, &sealer(), &representatives, 5, Effort::High).unwrap();
    let segments: Vec<_> = segments.iter().collect();
    merge(&store, &representatives, &segments, all, &mut writer).unwrap();
    let done = writer.finish().unwrap();
    assert_eq!((done.rows, done.values), (40_000, 40_000 + 2 * u64::from(FIELDS)));
    let merged = Segment::open(&store, &sealer(), &done.id, done.bytes).unwrap();
    // A bit for each cell would be 800 MB. A column with a single value also takes the head of a
    // column.
    assert!(done.bytes < 64 * done.values, "{} bytes for {} values", done.bytes, done.values);
    // A block ends at the row that fills it, or at the end of an entity if it is a quarter full.
    assert!(
        merged.blocks().len() <= 40_000 / (BLOCK_ROWS_MAX / 4) + 1,
        "{}",
        merged.blocks().len()
    );
    let blocks = (0..merged.blocks().len()).map(|at| merged.block(&store, at).unwrap());
    let tables: Vec<Table> = blocks.flat_map(|block| block.tables).collect();
    let parts: Vec<_> = parts.iter().map(RowSpan::whole).collect();
    let expected = sorted(&parts, &representatives).unwrap();
    let found =
        sorted(&tables.iter().map(RowSpan::whole).collect::<Vec<_>>(), &representatives).unwrap();
    assert!(found == expected);
}

#[test]
fn n3_a_block_ends_by_what_its_rows_hold() {
    let dense = |fields: u32| {
        let column =
            |field| Column { field, rows: RowSet::All, values: Values::Bool(vec![true; 9]) };
        Table {
            series: vec![0; 9],
            times_ns: vec![0; 9],
            columns: (0..fields).map(column).collect(),
        }
    };
    assert_eq!(RowSizes::of(&[dense(5)], Effort::High).rows_in_block(2), 7);
    assert_eq!(RowSizes::of(&[dense(1 << 16)], Effort::High).rows_in_block(2), 4);
    assert_eq!(RowSizes::of(&[dense(1 << 19)], Effort::High).rows_in_block(2), 1);
    // A block may begin in one table and end in the next.
    let both = [dense(5), dense(1 << 16)];
    assert_eq!(RowSizes::of(&both, Effort::High).rows_in_block(7), 5);
    let mut wide = dense(1 << 16);
    for column in &mut wide.columns {
        column.rows = RowSet::Some(vec![3]);
        column.values = Values::Bool(vec![true]);
    }
    assert_eq!(RowSizes::of(std::slice::from_ref(&wide), Effort::High).rows_in_block(0), 9);
    let text = |length| Values::Text(vec!["x".repeat(length).into(), "y".into()]);
    let texts = Column { field: 1 << 20, rows: RowSet::Some(vec![3, 4]), values: text(1 << 22) };
    wide.columns.push(texts);
    assert_eq!(RowSizes::of(std::slice::from_ref(&wide), Effort::High).rows_in_block(0), 4);
    assert_eq!(RowSizes::of(std::slice::from_ref(&wide), Effort::High).rows_in_block(4), 5);
}

#[test]
fn any_damage_to_a_file_is_noticed() {
    let representatives = Representatives::new(&catalog());
    let store = MemoryStore::default();
    let few: Vec<Row> = (0..60).map(|at| (at % 4, START_NS, Some(0.5), f64::from(at))).collect();
    let (_, done) = write(&store, &representatives, &few);
    let length = usize::try_from(done.bytes).unwrap();
    let bytes = store.read_segment(&done.id, 0, length).unwrap();
    let read_whole = |bytes: &[u8]| -> Result<()> {
        let store = MemoryStore::default();
        let mut new = store.create_segment(&done.id).unwrap();
        new.append(bytes).unwrap();
        new.finish().unwrap();
        let segment = Segment::open(&store, &sealer(), &done.id, bytes.len() as u64)?;
        for (at, block) in segment.blocks().iter().enumerate() {
            segment.block(&store, at)?;
            if block.has_statistics() {
                segment.read(&store, SegmentPart::Statistics(at))?;
            }
        }
        Ok(())
    };
    read_whole(&bytes).unwrap();
    for at in 0..bytes.len() {
        assert!(read_whole(&bytes[..at]).is_err(), "{at}");
        for flip in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            assert!(read_whole(&damaged).is_err(), "{at}");
        }
    }
    // A file under the name of another file is refused.
    let mut new = store.create_segment(&[9; 16]).unwrap();
    new.append(&bytes).unwrap();
    new.finish().unwrap();
    assert!(Segment::open(&store, &sealer(), &[9; 16], done.bytes).is_err());
}
