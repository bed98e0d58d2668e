//! Streams of a producer that keeps only the memory rules of the Arrow C interface. The input
//! decides lengths, offsets, indices, types and texts.
//!
//! A refused piece leaves no row, and each structure comes back once.

use std::collections::VecDeque;
use std::ffi::CString;

use fleetcast_arrow::{ColumnMapping, MeasurementFrom, RowReader};
use fleetcast_core::model::error::Error;
use fleetcast_core::plane::{Acknowledgement, Plane, WriteError};

use super::arrow_data::{Input, data_of};
use super::target::Target;
use super::view::{LIMITS, NOW_NS};
use crate::producer::{Type, live_structures, stream};

pub(super) const TARGET: Target = Target {
    name: "arrow",
    seeds,
    words: &[
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xff\x00\x00\x00\x00\x00\x00\x80",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xff\x0d\x00\x00\x00link",
        b"entity_id",
        b"satellite link",
    ],
    memory_bytes_max: 16 << 20,
    cost: None,
    run,
};

/// Names of columns in scans and in the mappings below.
const NAMES: [&[u8]; 10] = [
    b"time",
    b"measurement",
    b"tags",
    b"x:float",
    b"x:bool",
    b"x:text",
    b"y",
    b"entity_id",
    b"",
    b"\xff",
];

/// Types; types with parts come last.
const FORMATS: [&str; 24] = [
    "tsn:UTC", "vu", "u", "U", "g", "b", "i", "l", "f", "c", "C", "s", "S", "I", "L", "n", "tss:",
    "tdD", "z", "", "+m", "+l", "+L", "+s",
];
const PARTED: usize = 20;
const COLUMNS_MAX: u8 = 9;
const BATCHES_MAX: u8 = 4;
const DEPTH_MAX: usize = 10;

/// Streams of these columns by name and type, each with and without a mapping. All values are zero.
fn seeds() -> Vec<Vec<u8>> {
    let scan: &[(u8, u8)] = &[(0, 0), (1, 1), (2, 20), (3, 4), (4, 5), (5, 2)];
    let flat: &[(u8, u8)] = &[(0, 7), (1, 3), (7, 1), (6, 8), (3, 6), (5, 1)];
    let listed: &[(u8, u8)] = &[(0, 0), (1, 2), (2, 22), (6, 15)];
    let mut seeds = Vec::new();
    for (mapping, columns) in [(0, scan), (0, listed), (1, flat), (2, flat), (3, scan)] {
        let mut seed = vec![mapping, u8::try_from(columns.len()).expect("few")];
        for (name, format) in columns {
            seed.extend([*name, *format, 0, 0]);
        }
        seed.push(2);
        for round in 0..96_u8 {
            seed.extend([round % 5, 3, round, 1, 7, 0]);
        }
        seeds.push(seed);
    }
    seeds
}

fn mapping(input: &mut Input<'_>) -> Option<ColumnMapping> {
    let kind = input.byte();
    let column = |name: &str| name.to_owned();
    (!kind.is_multiple_of(4)).then(|| ColumnMapping {
        time: column("time"),
        time_unit_ns: (kind % 4 == 1).then_some(1),
        measurement: match kind % 4 {
            2 => MeasurementFrom::Name("link".to_owned()),
            _ => MeasurementFrom::Column(column("measurement")),
        },
        entity: (kind % 4 != 3).then(|| column("entity_id")),
        tags: vec![(column("site"), column("y"))],
        fixed_tags: vec![(column("source"), column("file"))],
        fields: (kind % 4 == 3).then(|| vec![(column("f"), column("x:float"))]),
    })
}

fn name(input: &mut Input<'_>) -> CString {
    let name = NAMES[usize::from(input.byte()) % NAMES.len()];
    CString::new(name).expect("no NUL")
}

/// Returns any type, with parts of any types.
fn type_of(input: &mut Input<'_>, depth: usize) -> Type {
    let name = name(input);
    let format = usize::from(input.byte()) % FORMATS.len();
    let texts = |name: &str| Type {
        format: c"u".to_owned(),
        name: CString::new(name).expect("no NUL"),
        children: Vec::new(),
        dictionary: None,
    };
    let parts = input.byte();
    let children = if depth >= DEPTH_MAX {
        Vec::new()
    } else if parts > 0 {
        (1..parts % 4).map(|_| type_of(input, depth + 1)).collect()
    } else if format == FORMATS.len() - 1 {
        vec![texts("key"), texts("value")]
    } else if format >= PARTED {
        let children = vec![texts("key"), texts("value")];
        vec![Type { format: c"+s".to_owned(), children, ..texts("entries") }]
    } else {
        Vec::new()
    };
    let has_dictionary = input.byte() % 3 == 1 && depth < DEPTH_MAX;
    let dictionary = has_dictionary.then(|| Box::new(type_of(input, depth + 1)));
    Type { format: CString::new(FORMATS[format]).expect("no NUL"), name, children, dictionary }
}

fn root(input: &mut Input<'_>) -> Type {
    let columns = input.byte() % COLUMNS_MAX;
    Type {
        format: c"+s".to_owned(),
        name: CString::default(),
        children: (0..columns).map(|_| type_of(input, 1)).collect(),
        dictionary: None,
    }
}

fn run(bytes: &[u8]) {
    let before = live_structures();
    let mut input = Input(bytes);
    let mapping = mapping(&mut input);
    let schema = root(&mut input);
    let batches = input.byte() % BATCHES_MAX;
    let mut handed_out = VecDeque::new();
    for _ in 0..batches {
        let rows = usize::from(input.byte() % 16);
        let data = data_of(&schema, rows, &mut input);
        handed_out.push_back(if input.is_odd() {
            Err(i32::from(input.byte()) + 1)
        } else {
            Ok(data)
        });
    }
    let schema = (!input.is_odd()).then_some(schema);
    match RowReader::new(stream(schema, handed_out), mapping, 0) {
        Ok(reader) => write(reader),
        Err(error) => assert_clear(&error),
    }
    assert_eq!(live_structures(), before, "structures that nobody released");
}

fn write(mut reader: RowReader) {
    let plane = Plane::in_memory("acme").expect("random bytes");
    let rows = || plane.stats().expect("memory").counts.rows;
    loop {
        let (before, first_row) = (rows(), reader.next_row());
        let written = reader.with_next(|piece| {
            assert_eq!(piece.first_row, first_row);
            plane.write_rows(piece, &LIMITS, NOW_NS, Acknowledgement::Durable)
        });
        match written {
            Ok(None) => break,
            Ok(Some(Ok(written))) => {
                let accepted = u64::from(written.accepted_count);
                assert_eq!(rows(), before + accepted, "a piece is there whole");
                let rejected = written.rejected_indices.len() as u64;
                assert_eq!((reader.next_row() - first_row) as u64, accepted + rejected);
            }
            Ok(Some(Err(WriteError::Refused(_)))) => {
                assert_eq!(rows(), before, "a piece that is refused leaves nothing");
            }
            Ok(Some(Err(WriteError::Failed(error)))) => panic!("{error}"),
            Err(error) => {
                assert_clear(&error);
                assert_eq!(rows(), before, "a piece that cannot be read leaves nothing");
                break;
            }
        }
    }
}

/// Checks that the error names the column, or the stream, at fault.
fn assert_clear(error: &Error) {
    let Error::Invalid { message } = error else { panic!("{error}") };
    assert!(message.contains("column") || message.contains("stream"), "{message}");
}
