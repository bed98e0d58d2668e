//! A tenant's whole path: bytes to committed block, newest samples and series as JSON.
//!
//! The store lies below `target/`, on the disk of the repository: a file system in memory would
//! sync for nothing.

mod inputs;

use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::time::{SECOND_NS, write_rfc3339};
use fleetcast_core::plane::{Acknowledgement, CompactionTrigger, Plane, WriteReport};
use fleetcast_core::query::{AnswerBounds, SeriesLimits, SeriesQuery};
use fleetcast_core::storage::store::DirectoryPlanes;
use fleetcast_core::wire::Format;

use self::inputs::{BODY_RECORDS, Fleet, START_NS, entity_id};

const INGEST_NS: i64 = START_NS + 86_400 * SECOND_NS;
const MASTER_KEY: [u8; 32] = [7; 32];

fn hour() -> impl Iterator<Item = Vec<u8>> {
    let mut fleet = Fleet::new(0);
    (0..360).map(move |step| fleet.body(START_NS + step * 10 * SECOND_NS))
}

fn write(plane: &Plane, body: &[u8]) -> WriteReport {
    let limits = WriteLimits::default();
    plane
        .write(Format::Json, body, &limits, INGEST_NS, Acknowledgement::Durable)
        .expect("a valid body")
}

fn write_all(plane: &Plane, bodies: impl Iterator<Item = Vec<u8>>) {
    for body in bodies {
        write(plane, &body);
    }
}

fn writes(criterion: &mut Criterion) {
    let bodies: Vec<Vec<u8>> = hour().take(16).collect();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = tempfile::tempdir_in(target).expect("a folder below target");
    let planes = DirectoryPlanes::new(folder.path());
    Plane::create(&planes, "plane", &MASTER_KEY).expect("a fresh folder");
    let durable = Plane::open(&planes, "plane", &MASTER_KEY, "bench").expect("just made");
    let memory = Plane::in_memory("bench").expect("randomness");
    let mut group = criterion.benchmark_group("write 1000 records");
    group.throughput(Throughput::Elements(BODY_RECORDS.into()));
    for (name, plane) in [("memory", &memory), ("lmdb", &durable)] {
        write_all(plane, bodies.iter().cloned());
        let mut turn = bodies.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let body = turn.next().expect("it never ends");
                write(plane, body)
            });
        });
    }
    group.finish();
}

fn latest(criterion: &mut Criterion) {
    let plane = Plane::in_memory("bench").expect("randomness");
    write_all(&plane, (0..100).map(|number| Fleet::new(number * BODY_RECORDS).body(START_NS)));
    let freshness_ns = 7 * 86_400 * SECOND_NS;
    let latest =
        || plane.answer_latest(Some(INGEST_NS), freshness_ns, None, INGEST_NS).expect("memory");
    let mut group = criterion.benchmark_group("latest");
    group.throughput(Throughput::Bytes(latest().len() as u64));
    group.bench_function("100000 entities x 5", |bencher| bencher.iter(|| black_box(latest())));
    group.finish();
}

fn series(criterion: &mut Criterion) {
    let plane = Plane::in_memory("bench").expect("randomness");
    write_all(&plane, hour());
    let query = |windows| SeriesQuery {
        entity_ids: (0..16).map(|number| entity_id(number * 61)).collect(),
        start_ns: START_NS,
        end_ns: START_NS + 3_600 * SECOND_NS,
        measurement: "link".to_owned(),
        fields: Vec::new(),
        windows,
    };
    let mut group = criterion.benchmark_group("series of 16 entities over an hour");
    let minutes = Some((Interval::OneMinute, Aggregation::Mean));
    for (name, windows) in [("raw", None), ("minutes", minutes)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let answer = plane.series(query(windows), AnswerBounds::NONE, INGEST_NS);
                answer.expect("memory").to_json_chunks()
            });
        });
    }
    group.finish();
}

/// Rows of four entities over an hour, beside one record of 4,000 fields or none.
fn rows_of_an_hour(has_wide: bool) -> Vec<Vec<u8>> {
    const ROWS: i64 = 4_000;
    let record = |at: i64| {
        let mut time = Vec::new();
        write_rfc3339(&mut time, START_NS + at * 900_000_000);
        let time = String::from_utf8(time).expect("digits");
        let fields: Vec<String> = match at {
            2_000 if has_wide => (0..4_000).map(|field| format!("\"f{field}\":{at}.5")).collect(),
            _ => ["snr_db", "power_w", "rate"].map(|name| format!("\"{name}\":{at}.5")).to_vec(),
        };
        format!(
            "{{\"measurement\":\"link\",\"time\":\"{time}\",\"tags\":{{\"entity_id\":\"e{}\"}},\
             \"fields\":{{{}}}}}",
            at % 4,
            fields.join(","),
        )
    };
    let records: Vec<String> = (0..ROWS).map(record).collect();
    records.chunks(1_000).map(|some| format!("[{}]", some.join(",")).into_bytes()).collect()
}

/// Width costs what is stored: the two of each pair take about as long.
fn wide(criterion: &mut Criterion) {
    let query = || SeriesQuery {
        entity_ids: (0..4).map(|number| format!("e{number}")).collect(),
        start_ns: START_NS,
        end_ns: START_NS + 3_600 * SECOND_NS,
        measurement: "link".to_owned(),
        fields: Vec::new(),
        windows: None,
    };
    let bounds = SeriesLimits::default().bounds();
    let mut group = criterion.benchmark_group("4000 rows");
    for (name, has_wide) in [("narrow", false), ("one of 4000 fields", true)] {
        let bodies = rows_of_an_hour(has_wide);
        let written = || {
            let plane = Plane::in_memory("bench").expect("randomness");
            write_all(&plane, bodies.iter().cloned());
            plane
        };
        group.bench_function(format!("compact, {name}"), |bencher| {
            let compacted = |plane: Plane| {
                plane.compact(CompactionTrigger::Now, INGEST_NS).expect("memory");
                plane
            };
            bencher.iter_batched(written, compacted, BatchSize::PerIteration);
        });
        let plane = written();
        plane.compact(CompactionTrigger::Now, INGEST_NS).expect("memory");
        group.bench_function(format!("series, {name}"), |bencher| {
            bencher.iter(|| plane.series(query(), bounds, INGEST_NS).expect("memory"));
        });
    }
    group.finish();
}

criterion_group! {
    name = plane;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(3))
        .sample_size(30);
    targets = writes, latest, series, wide
}
criterion_main!(plane);
