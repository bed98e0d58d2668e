//! Statistics of blocks, next to the rows that they summarise.

use super::*;
use crate::model::aggregate::{Aggregation, Statistic};
use crate::model::fold::Fold;
use crate::storage::segment::statistics;

#[test]
fn statistics_are_those_of_the_rows() {
    let representatives = Representatives::new(&catalog());
    let store = MemoryStore::default();
    let (segment, _) = write(&store, &representatives, &many_rows(0.0));
    for at in 0..segment.blocks().len() {
        assert!(segment.blocks()[at].has_statistics());
        let block = segment.block(&store, at).unwrap();
        let rows = rows(&block.tables[0]);
        let statistics = decode_block(&segment.read(&store, SegmentPart::Statistics(at)).unwrap());
        let statistics = statistics.unwrap().tables.remove(0);
        let hours = statistics.series.iter().zip(&statistics.times_ns);
        for (hour, (representative, start_ns)) in hours.enumerate() {
            let within = rows.iter().filter(|row| {
                representatives.representative(row.0).unwrap() == *representative
                    && hour_of(row.1) == *start_ns
            });
            let mut expected = Fold::default();
            within.clone().for_each(|row| expected.add(row.1, row.2.unwrap()));
            // Decimals add up exactly, as integers do.
            let sum: f64 = within.map(|row| (row.2.unwrap() * 10.0).round()).sum::<f64>() / 10.0;
            expected.set(Statistic::Sum, *start_ns, sum);
            for statistic in Statistic::ALL {
                let field = statistics::column_of(1, statistic);
                let column = statistics.columns.iter().find(|column| Some(column.field) == field);
                let found = column.map(|column| match &column.values {
                    Values::Float(values) => values[hour],
                    _ => panic!("statistics are doubles"),
                });
                assert_eq!(found, expected.get(statistic, *start_ns), "{statistic:?}");
            }
        }
    }
}

#[test]
fn a_field_of_few_values_has_no_statistics_and_is_named_for_it() {
    let representatives = Representatives::new(&catalog());
    let rows: Vec<Row> =
        (0..60_u32).map(|at| (0, START_NS + i64::from(at), None, f64::from(at))).collect();
    let mut table = table(&rows);
    table.columns.retain(|column| column.field < 10);
    let few = |field, rows: Vec<u32>| {
        let values = Values::Float(rows.iter().map(|row| f64::from(*row)).collect());
        Column { field, rows: RowSet::Some(rows), values }
    };
    table.columns.push(few(5, vec![7, 8, 9]));
    table.columns.push(few(6, vec![7, 8, 9, 10]));
    let statistics = statistics::of(&table, &representatives).unwrap().unwrap();
    let fields =
        |table: &Table| -> Vec<u32> { table.columns.iter().map(|column| column.field).collect() };
    let [hours, left_out] = &statistics[..] else { panic!("{statistics:?}") };
    assert_eq!(hours.row_count(), 1);
    assert!(fields(hours).iter().all(|column| [2, 6].contains(&(column >> 3))));
    assert_eq!((left_out.row_count(), fields(left_out)), (0, vec![5]));
    assert!(statistics::agree(Some(&statistics), &table, &representatives).unwrap());
    // A writer may leave out other fields, or none, or all. The fields that it keeps must be right.
    table.columns.retain(|column| column.field != 5);
    let whole = statistics::of(&table, &representatives).unwrap().unwrap();
    assert_eq!(whole.len(), 1);
    assert!(!statistics::agree(Some(&statistics), &table, &representatives).unwrap());
    assert!(!statistics::agree(None, &table, &representatives).unwrap());
    table.columns = vec![few(5, vec![7, 8, 9])];
    assert_eq!(statistics::of(&table, &representatives).unwrap(), None);
    assert!(statistics::agree(None, &table, &representatives).unwrap());
}

#[test]
fn h28_an_hour_whose_sum_overflows_keeps_its_mean() {
    let representatives = Representatives::new(&catalog());
    let huge: Vec<Row> = (0..30).map(|at| (0, START_NS + at, Some(f64::MAX), 0.5)).collect();
    let statistics = &statistics::of(&table(&huge), &representatives).unwrap().unwrap()[0];
    let mut fold = Fold::default();
    for statistic in Statistic::of(Aggregation::Mean) {
        let field = statistics::column_of(1, *statistic);
        for column in statistics.columns.iter().filter(|column| Some(column.field) == field) {
            let Values::Float(values) = &column.values else { panic!("statistics are doubles") };
            fold.set(*statistic, START_NS, values[0]);
        }
    }
    let mean = fold.result(Aggregation::Mean).unwrap();
    assert!((mean / f64::MAX - 1.0).abs() < 1e-12, "{mean}");
}

#[test]
fn rows_at_the_ends_of_64_bits_are_written_and_read() {
    let times_ns = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX];
    let row = |(at, time_ns): (i32, &i64)| (0, *time_ns, Some(f64::from(at)), f64::from(at));
    let rows: Vec<Row> = (0..).zip(&times_ns).map(row).collect();
    let store = MemoryStore::default();
    let (segment, _) = write(&store, &Representatives::new(&catalog()), &rows);
    assert_eq!(read(&store, &segment), rows);
}
