//! Blocks of the log and of segments after the seal is removed.

use fleetcast_core::codec::{BlockReader, Effort, decode_block, encode_block};
use fleetcast_core::model::batch::{Block, Column, RowSet, Table, Values};

use super::target::Target;

const CHECKSUM_BYTES: usize = 4;

pub(super) const TARGET: Target = Target {
    name: "block",
    seeds,
    words: &[b"\x00", b"\x01", b"\x40", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x40", b"\xff\xff\x3f"],
    // A block may claim 2^24 values of eight bytes or short texts, and is decoded twice here.
    memory_bytes_max: 2 << 30,
    cost: None,
    run,
};

fn column(field: u32, rows: RowSet, values: Values) -> Column {
    Column { field, rows, values }
}

fn seeds() -> Vec<Vec<u8>> {
    let floats = |count: u32| (0..count).map(|n| f64::from(n) * 0.25 - 3.0).collect::<Vec<_>>();
    let wide = Table {
        series: (0..40).map(|n| n / 4).collect(),
        times_ns: (0..40).map(|n| 1_790_000_000_000_000_000 + n * 1_000_000_007).collect(),
        columns: vec![
            column(0, RowSet::All, Values::Float(floats(40))),
            column(1, RowSet::Some((0..40).step_by(3).collect()), Values::Float(floats(14))),
            column(2, RowSet::All, Values::Bool((0..40).map(|n| n % 3 == 0).collect())),
            column(
                3,
                RowSet::Some(vec![0, 1, 39]),
                Values::Text(vec!["a".into(), "é".into(), "a".into()]),
            ),
            column(4, RowSet::All, Values::Float(vec![f64::MIN_POSITIVE; 40])),
        ],
    };
    let noise = Table {
        series: vec![5, 0, 5],
        times_ns: vec![i64::MAX, i64::MIN, 0],
        columns: vec![column(9, RowSet::All, Values::Float(vec![0.1 + 0.2, 1e300, -0.0]))],
    };
    // Long enough for ranges, for numbers outside of ranges, and for times along lines.
    let dice = |n: u32, below: u32| n * n * 7_919 % 10_007 % below;
    let spiky = |n: u32| if n == 300 { -9_999.5 } else { f64::from(dice(n, 41)) / 10.0 };
    let even = Table {
        series: vec![3; 301],
        times_ns: (0..301).map(|n| i64::from(n * 10_000 + dice(n, 10)) * 1_000_000).collect(),
        columns: vec![
            column(0, RowSet::All, Values::Float((0..301).map(spiky).collect())),
            column(1, RowSet::All, Values::Float((0..301).map(f64::from).collect())),
        ],
    };
    let many = (0..5).map(|column| Block { ingest_ns: 7, tables: vec![many(column)] });
    [
        Block::default(),
        Block { ingest_ns: 7, tables: vec![wide.clone()] },
        Block { ingest_ns: 7, tables: vec![even] },
        Block { ingest_ns: -1, tables: vec![noise, wide] },
    ]
    .into_iter()
    .chain(many)
    .map(|block| {
        let mut bytes = encode_block(&block, Effort::High).expect("within its bounds");
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        bytes
    })
    .collect()
}

/// Makes enough rows for codes by frequency, dictionaries, ratios and bases, and for times of a
/// clock that counts in doubles. Keeps a single column, as a seed must be short.
fn many(number: usize) -> Table {
    let dice = |n: u32, below: u32| n % 700 * (n % 700) * 7_919 % 10_007 % below;
    let values: [&dyn Fn(u32) -> f64; 5] = [
        &|n| f64::from(n / 9 * (n / 9)) / 10.0,
        &|n| f64::from(dice(n, 7)).sqrt(),
        &|n| f64::from(dice(n, 5_000)) / 4_166.0,
        &|n| f64::from(dice(n, 9_000)) * 20_480.0 + f64::from(n / 400),
        &|n| f64::from(n).sqrt(),
    ];
    Table {
        series: (0..1_200).map(|n| n / 400).collect(),
        times_ns: (0..1_200)
            .map(|n| (((1_i128 << 52) + n * n) * 1_953_125) >> 13)
            .map(|time_ns| i64::try_from(time_ns).expect("far from its end"))
            .collect(),
        columns: vec![column(
            0,
            RowSet::All,
            Values::Float((0..1_200).map(values[number]).collect()),
        )],
    }
}

/// `covered` is the part of a block that the checksum at its end covers.
fn run(covered: &[u8]) {
    let bytes = &[covered, &crc32fast::hash(covered).to_le_bytes()].concat();
    let whole = decode_block(bytes);
    if let Ok(block) = &whole {
        let again = encode_block(block, Effort::High).expect("within its bounds");
        let decoded = decode_block(&again).expect("what was encoded can be decoded");
        let once_more = encode_block(&decoded, Effort::High).expect("within its bounds");
        assert_eq!(once_more, again, "what was decoded is written as it was");
    }
    // Reads a column at a time, like reads do. If the whole block is good, each column is good and
    // equal.
    let Ok(reader) = BlockReader::open(bytes) else {
        assert!(whole.is_err());
        return;
    };
    let mut sound = true;
    for at in 0..reader.tables().len() {
        let Ok(table) = reader.table(at) else {
            sound = false;
            continue;
        };
        let series = table.series();
        let times = table.times_ns();
        sound &= times.is_ok();
        for column_at in 0..reader.tables()[at].columns.len() {
            let column = table.column(column_at);
            sound &= column.is_ok();
            if let (Ok(block), Ok(column)) = (&whole, &column) {
                assert_eq!(column.rows, block.tables[at].columns[column_at].rows);
            }
        }
        if let Ok(block) = &whole {
            assert_eq!(series, block.tables[at].series);
            assert_eq!(times.ok().as_ref(), Some(&block.tables[at].times_ns));
        }
    }
    assert_eq!(sound, whole.is_ok(), "in parts and in whole");
}
