//! Whole blocks come back bit-exact, and hostile bytes do no harm.

use proptest::prelude::*;

use super::write::VERSION;
use super::{BlockReader, decode_block, encode_block};
use crate::codec::Effort;
use crate::model::batch::{Block, Column, RowSet, Table, Values};
use crate::model::error::Error;
use crate::model::limits::{BLOCK_CELLS_MAX, BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX};

/// Compares bits instead of doubles, for which -0.0 and 0.0 would be equal.
fn bits(block: &Block) -> Vec<Vec<u64>> {
    let columns = block.tables.iter().flat_map(|table| &table.columns);
    columns
        .map(|column| match &column.values {
            Values::Float(values) => values.iter().map(|value| value.to_bits()).collect(),
            Values::Bool(_) | Values::Text(_) => Vec::new(),
        })
        .collect()
}

fn assert_comes_back(block: &Block) {
    for effort in [Effort::Low, Effort::High] {
        assert_comes_back_after(block, effort);
    }
}

fn assert_comes_back_after(block: &Block, effort: Effort) {
    let bytes = encode_block(block, effort).unwrap();
    let back = decode_block(&bytes).unwrap();
    assert_eq!(&back, block);
    assert_eq!(bits(&back), bits(block));
    let reader = BlockReader::open(&bytes).unwrap();
    for (at, table) in block.tables.iter().enumerate() {
        let head = &reader.tables()[at];
        assert_eq!(head.row_count, table.row_count());
        let bounds = head.times.map(|bounds| (bounds.min_ns, bounds.max_ns));
        let expected = table.times_ns.iter().min().zip(table.times_ns.iter().max());
        assert_eq!(bounds, expected.map(|(min, max)| (*min, *max)));
        // Columns decode in any order.
        let reader = reader.table(at).unwrap();
        for (at, column) in table.columns.iter().enumerate().rev() {
            assert_eq!(&reader.column(at).unwrap(), column);
            assert_eq!(reader.head().columns[at].count, column.values.len());
        }
        assert_eq!(reader.series(), table.series);
    }
}

fn float() -> impl Strategy<Value = f64> {
    let decimal = (-100_000_i32..100_000, 0_i32..4)
        .prop_map(|(integer, exponent)| f64::from(integer) / 10_f64.powi(exponent));
    let extremes = [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e15, 0.1 + 0.2];
    prop_oneof![
        20 => decimal,
        2 => proptest::sample::select(extremes.to_vec()),
        1 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
    ]
}

fn values(count: usize) -> impl Strategy<Value = Values> {
    use proptest::collection::vec;
    let text = prop_oneof![
        proptest::sample::select(vec!["", "ok", "degraded", "\u{1f6f0}"]).prop_map(Box::from),
        any::<String>().prop_map(Box::<str>::from),
    ];
    prop_oneof![
        vec(float(), count).prop_map(Values::Float),
        vec((-9_000_i32..9_000).prop_map(|at| f64::from(at) / 100.0), count)
            .prop_map(Values::Float),
        vec(any::<u64>().prop_map(|bits| f64::from_bits(bits >> 2)), count).prop_map(Values::Float),
        vec(-120_i32..121, count).prop_map(|steps| Values::Float(walk(&steps))),
        vec(any::<bool>(), count).prop_map(Values::Bool),
        any::<bool>().prop_map(move |value| Values::Bool(vec![value; count])),
        vec(text, count).prop_map(Values::Text),
    ]
}

/// Hundredths that wrap around now and then, like an azimuth.
fn walk(steps: &[i32]) -> Vec<f64> {
    let mut at = 35_000;
    let step = |step: &i32| {
        at = (at + step + 20).rem_euclid(36_000);
        f64::from(at) / 100.0
    };
    steps.iter().map(step).collect()
}

fn column(row_count: usize) -> impl Strategy<Value = Column> {
    let some = proptest::collection::vec(any::<bool>(), row_count).prop_map(|kept| {
        RowSet::Some((0..).zip(kept).filter(|(_, kept)| *kept).map(|(row, _)| row).collect())
    });
    let end = u32::try_from(row_count).unwrap();
    let few = proptest::collection::btree_set(0..end.max(1), 0..=row_count.min(3));
    let most = few
        .clone()
        .prop_map(move |gaps| RowSet::Some((0..end).filter(|row| !gaps.contains(row)).collect()));
    let few = few.prop_map(|rows| RowSet::Some(rows.into_iter().collect()));
    prop_oneof![2 => Just(RowSet::All), 2 => some, 1 => few, 1 => most].prop_flat_map(move |rows| {
        let count = match &rows {
            RowSet::All => row_count,
            RowSet::Some(rows) => rows.len(),
        };
        values(count).prop_map(move |values| Column { field: 0, rows: rows.clone(), values })
    })
}

fn table() -> impl Strategy<Value = Table> {
    let run = (0_u32..1 << 31, prop_oneof![Just(1_usize), 1_usize..40]);
    let base = prop_oneof![any::<i64>(), Just(1_700_000_000_000_000_000)];
    (proptest::collection::vec(run, 0..12), base, any::<bool>()).prop_flat_map(
        |(runs, base, wild)| {
            let series: Vec<u32> =
                runs.iter().flat_map(|(series, length)| vec![*series; *length]).collect();
            let row_count = series.len();
            let jitter = proptest::collection::vec(0_i64..10, row_count);
            let times = if wild {
                prop_oneof![
                    proptest::collection::vec(any::<i64>(), row_count),
                    jitter.prop_map(move |jitter| {
                        let time =
                            |(at, jitter): (i64, i64)| base.wrapping_add(at * 9_990_000 + jitter);
                        (0..).zip(jitter).map(time).collect()
                    }),
                ]
                .boxed()
            } else {
                let steps = (0..).take(row_count).map(|at| base.wrapping_add(at * 10_000_000_000));
                Just(steps.collect()).boxed()
            };
            (times, proptest::collection::vec(column(row_count), 0..5)).prop_map(
                move |(times_ns, mut columns)| {
                    for (field, column) in (0..).zip(&mut columns) {
                        column.field = 1_000 - field * 7;
                    }
                    Table { series: series.clone(), times_ns, columns }
                },
            )
        },
    )
}

fn block() -> impl Strategy<Value = Block> {
    (any::<i64>(), proptest::collection::vec(table(), 0..3))
        .prop_map(|(ingest_ns, tables)| Block { ingest_ns, tables })
}

/// A block with every form of every part, short enough to damage it everywhere.
fn varied_block() -> Block {
    let series: Vec<u32> = (0..60).map(|row| 3 + row / 6).collect();
    let times_ns: Vec<i64> =
        (0..60).map(|row| 1_700_000_000_000_000_000 + row % 6 * 1_000).collect();
    let snr: Vec<f64> = (0..60).map(|row| f64::from(row * 7 % 50) / 10.0).collect();
    let mut patched = snr.clone();
    patched[17] = -0.0;
    let noise: Vec<f64> = (1..31).map(|row| 1.0 / f64::from(row)).collect();
    let text = |row: i32| Box::from(if row % 5 == 0 { "handover" } else { "steady" });
    let columns = vec![
        Column { field: 1, rows: RowSet::All, values: Values::Float(snr) },
        Column { field: 2, rows: RowSet::All, values: Values::Float(patched) },
        Column {
            field: 9,
            rows: RowSet::Some((0..60).step_by(2).collect()),
            values: Values::Float(noise),
        },
        Column {
            field: 4,
            rows: RowSet::All,
            values: Values::Bool((0..60).map(|row| row % 3 == 0).collect()),
        },
        Column {
            field: 5,
            rows: RowSet::Some(vec![3, 4, 59]),
            values: Values::Text((3..6).map(text).collect()),
        },
        Column { field: 6, rows: RowSet::All, values: Values::Text((0..60).map(text).collect()) },
        Column { field: 7, rows: RowSet::Some(vec![]), values: Values::Float(vec![]) },
    ];
    let one = Table { series: vec![1], times_ns: vec![i64::MIN], columns: vec![] };
    Block {
        ingest_ns: 1_700_000_000_000_000_000,
        tables: vec![Table { series, times_ns, columns }, one],
    }
}

/// A block whose columns are longer than a group. Its forms are ranges with exceptions, differences
/// and lines.
fn long_block() -> Block {
    let random = |at: i64, end: i64| at * at * 7_919 % 10_007 % end;
    let rows = 0..400_i64;
    let steps: Vec<i32> =
        rows.clone().map(|at| i32::try_from(random(at, 241)).unwrap() - 80).collect();
    let snr = rows.clone().map(|at| f64::from(i32::try_from(random(at, 9)).unwrap()) / 10.0);
    let mut spiky: Vec<f64> = snr.clone().collect();
    spiky[399] = -12_345.6;
    let values = [walk(&steps), snr.collect(), spiky];
    let columns = (3..).zip(values).map(|(field, values)| Column {
        field,
        rows: RowSet::All,
        values: Values::Float(values),
    });
    let series = rows.clone().map(|at| u32::try_from(at / 200).unwrap()).collect();
    let times_ns = rows.map(|at| at % 200 * 10_000_000_000 + random(at, 10) * 1_000_000).collect();
    Block { ingest_ns: 5, tables: vec![Table { series, times_ns, columns: columns.collect() }] }
}

fn assert_corrupt(bytes: &[u8]) {
    assert!(matches!(decode_block(bytes), Err(Error::Corrupt { .. })));
}

/// Corrects the checksum, as an attacker would.
fn fix_checksum(bytes: &mut [u8]) {
    if let Some((covered, checksum)) = bytes.split_last_chunk_mut() {
        *checksum = crc32fast::hash(covered).to_le_bytes();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_block_comes_back(block in block()) {
        assert_comes_back(&block);
    }

    #[test]
    fn hostile_bytes_with_a_right_checksum_do_no_harm(
        block in block(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode_block(&block, Effort::High).unwrap();
        for (at, value) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        fix_checksum(&mut bytes);
        // A decoded block keeps the promises of a block, so it can be written again.
        if let Ok(decoded) = decode_block(&bytes) {
            assert_comes_back(&decoded);
        }
        bytes.truncate(cut.index(bytes.len()));
        fix_checksum(&mut bytes);
        let _ = decode_block(&bytes);
    }

    #[test]
    fn noise_does_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(version) = bytes.first_mut() {
            *version = VERSION;
        }
        fix_checksum(&mut bytes);
        let _ = decode_block(&bytes);
    }
}

#[test]
fn a_varied_block_and_an_empty_one_come_back() {
    assert_comes_back(&varied_block());
    assert_comes_back(&long_block());
    assert_comes_back(&Block::default());
}

#[test]
fn every_truncation_and_flipped_bit_is_noticed() {
    let bytes = encode_block(&varied_block(), Effort::High).unwrap();
    for len in 0..bytes.len() {
        assert_corrupt(&bytes[..len]);
    }
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_corrupt(&bytes);
    }
    assert_corrupt(&[bytes, vec![0]].concat());
}

#[test]
fn every_byte_may_be_any_byte() {
    for block in [varied_block(), long_block()] {
        let bytes = encode_block(&block, Effort::High).unwrap();
        for at in 0..bytes.len() - 4 {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff, bytes[at] ^ 0x10, bytes[at].wrapping_add(1)]
            {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                fix_checksum(&mut bytes);
                if let Ok(decoded) = decode_block(&bytes) {
                    assert_comes_back(&decoded);
                }
            }
            let mut shorter = bytes.clone();
            shorter.remove(at);
            fix_checksum(&mut shorter);
            let _ = decode_block(&shorter);
        }
    }
}

/// Returns the bytes of the rows of a column of booleans in a table of 4,096 rows.
fn rows_len(rows: Vec<u32>) -> usize {
    let values = Values::Bool(vec![true; rows.len()]);
    let column = Column { field: 1, rows: RowSet::Some(rows), values };
    let table = Table { series: vec![1; 4096], times_ns: vec![0; 4096], columns: vec![column] };
    let bytes = encode_block(&Block { ingest_ns: 0, tables: vec![table] }, Effort::Low).unwrap();
    BlockReader::open(&bytes).unwrap().tables()[0].columns[0].rows_len
}

/// Few gaps take as few bytes as few values do.
#[test]
fn the_shorter_of_values_and_gaps_is_listed() {
    let (few, most): (Vec<u32>, Vec<u32>) = (0..4096).partition(|row| row % 401 == 7);
    assert!(rows_len(few.clone()) <= 2 * few.len());
    assert_eq!(rows_len(most), rows_len(few));
    let halves: Vec<u32> = (0..4096).filter(|row| row * row % 13 < 6).collect();
    assert!(rows_len(halves) <= 4096 / 8);
}

/// A block that exceeds the limits of a reader is refused with an error, never with a panic.
#[test]
fn more_than_a_block_may_hold_is_refused() {
    let refused = |table| {
        let block = Block { ingest_ns: 0, tables: vec![table] };
        match encode_block(&block, Effort::High) {
            Err(Error::TooLarge { what, count, max }) => (what, count, max),
            other => panic!("{:?}", other.map(|bytes| bytes.len())),
        }
    };
    let rows = |count: usize| Table {
        series: vec![1; count],
        times_ns: vec![0; count],
        columns: Vec::new(),
    };
    let largest = Block { ingest_ns: 0, tables: vec![rows(BLOCK_ROWS_MAX)] };
    assert_comes_back(&largest);
    let many = BLOCK_ROWS_MAX + 1;
    assert_eq!(refused(rows(many)), ("rows", many, BLOCK_ROWS_MAX));
    let bools = |field| Column {
        field,
        rows: RowSet::All,
        values: Values::Bool(vec![true; BLOCK_ROWS_MAX]),
    };
    let columns = (0..17).map(bools).collect();
    let values = ("values", 17 * BLOCK_ROWS_MAX, BLOCK_CELLS_MAX);
    assert_eq!(refused(Table { columns, ..rows(BLOCK_ROWS_MAX) }), values);
    let text = "x".repeat(BLOCK_TEXT_BYTES_MAX / 2);
    let texts = Values::Text(vec![text.clone().into(), text.into(), "y".into()]);
    let columns = vec![Column { field: 1, rows: RowSet::All, values: texts }];
    let bytes = ("bytes of text", BLOCK_TEXT_BYTES_MAX + 1, BLOCK_TEXT_BYTES_MAX);
    assert_eq!(refused(Table { columns, ..rows(3) }), bytes);
}
