//! A tenant's whole path: bytes to committed block, newest samples and series as JSON.
//!
//! The store lies below `target/`, on the disk of the repository: a file system in memory would
//! sync for nothing.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::time::{SECOND_NS, write_rfc3339};
use fleetcast_core::plane::{Acknowledge, Due, Plane, Written};
use fleetcast_core::query::{AnswerBounds, SeriesLimits, SeriesQuery};
use fleetcast_core::wire::Format;

const BODY_RECORDS: u32 = 1_000;
const START_NS: i64 = 1_790_000_000 * SECOND_NS;
const INGEST_NS: i64 = START_NS + 86_400 * SECOND_NS;
const MASTER_KEY: [u8; 32] = [7; 32];

/// A small generator: the same fleet on every machine.
struct Dice(u64);

impl Dice {
    /// Uniform from 0 to 1.
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from(u32::try_from(self.0 >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}

/// Each entity on its own random walk, a record of each in every body.
struct Fleet {
    dice: Dice,
    first: u32,
    state: Vec<[f64; 5]>,
}

impl Fleet {
    fn new(first: u32) -> Self {
        let mut dice = Dice(u64::from(first) + 42);
        let mut start = || {
            [
                360.0 * dice.roll(),
                5.0 + 80.0 * dice.roll(),
                600.0 + 1_400.0 * dice.roll(),
                4.0 + 16.0 * dice.roll(),
                dice.roll(),
            ]
        };
        let state = (0..BODY_RECORDS).map(|_| start()).collect();
        Self { dice, first, state }
    }

    fn body(&mut self, start_ns: i64) -> Vec<u8> {
        let mut out = String::from("[");
        for (at, state) in (0..).zip(&mut self.state) {
            let mut sway = |by: f64| by * (self.dice.roll() - 0.5);
            state[0] = (state[0] + sway(2.4)).rem_euclid(360.0);
            state[1] = (state[1] + sway(1.2)).clamp(5.0, 90.0);
            state[2] = (state[2] + sway(16.0)).clamp(550.0, 2_600.0);
            state[3] = (state[3] + sway(0.8)).clamp(-3.0, 25.0);
            state[4] = (state[4] + sway(0.04)).clamp(0.0, 1.0);
            let offset_ms = i64::from(at) * 10 + if self.dice.roll() < 0.5 { 0 } else { 7 };
            let mut time = Vec::new();
            write_rfc3339(&mut time, start_ns + offset_ms * 1_000_000);
            let time = String::from_utf8(time).expect("digits");
            let number = self.first + at;
            let comma = if at == 0 { "" } else { "," };
            let [azimuth, elevation, slant, snr, utilization] = state;
            write!(
                out,
                "{comma}{{\"measurement\":\"link\",\"time\":\"{time}\",\"tags\":{{\
                 \"entity_id\":\"{}\",\"entity_type\":\"satellite_link\",\
                 \"ground_station\":\"gs-{:03}.northern\",\"beam\":\"ka-{:04}-downlink\"}},\
                 \"fields\":{{\"azimuth_deg\":{azimuth:.2},\"elevation_deg\":{elevation:.2},\
                 \"slant_range_km\":{slant:.1},\"snr_db\":{snr:.1},\
                 \"utilization\":{utilization:.3}}}}}",
                entity_id(number),
                number % 40,
                number % 256,
            )
            .expect("memory");
        }
        out.push(']');
        out.into_bytes()
    }
}

fn entity_id(number: u32) -> String {
    format!("satellite-link-{number:06}")
}

fn hour() -> impl Iterator<Item = Vec<u8>> {
    let mut fleet = Fleet::new(0);
    (0..360).map(move |step| fleet.body(START_NS + step * 10 * SECOND_NS))
}

fn write(plane: &Plane, body: &[u8]) -> Written {
    let limits = WriteLimits::default();
    plane.write(Format::Json, body, &limits, INGEST_NS, Acknowledge::Durable).expect("a valid body")
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
    let path = folder.path().join("plane");
    Plane::create(&path, &MASTER_KEY).expect("a fresh folder");
    let durable = Plane::open(&path, &MASTER_KEY, "bench").expect("just made");
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
    let latest =
        || plane.latest_json(INGEST_NS, 7 * 86_400 * SECOND_NS, None, INGEST_NS).expect("memory");
    let mut group = criterion.benchmark_group("latest");
    group.throughput(Throughput::Bytes(latest().iter().map(|chunk| chunk.len() as u64).sum()));
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
                plane.compact(Due::Now, INGEST_NS).expect("memory");
                plane
            };
            bencher.iter_batched(written, compacted, BatchSize::PerIteration);
        });
        let plane = written();
        plane.compact(Due::Now, INGEST_NS).expect("memory");
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
