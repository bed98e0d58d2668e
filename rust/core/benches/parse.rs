//! Time that bodies take to become batches: `cargo bench -p fleetcast-core --bench parse`.
//!
//! `FLEETCAST_BODIES=dir` also writes the bodies there, to time other parsers on them.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fleetcast_core::model::batch::{Batch, NEW_SERIES_BASE};
use fleetcast_core::model::catalog::Catalog;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::model::time::{SECOND_NS, YEAR_2000_NS, write_rfc3339};
use fleetcast_core::wire::{
    Adapter, NameRules, ParseContext, Protocol, parse_json, parse_protobuf,
};

const RECORD_COUNT: u64 = 1_000;
const PROTOBUF_RECORD_COUNT: u64 = 10_000;
const METRIC_SERIES: u32 = 1_000;
const METRICS: [&str; 10] = [
    "node_load1",
    "node_load5",
    "node_load15",
    "node_memory_free_bytes",
    "node_memory_cached_bytes",
    "node_filesystem_free_bytes",
    "node_network_sent_bytes_total",
    "node_network_received_bytes_total",
    "node_context_switches_total",
    "node_time_seconds",
];
const START_NS: i64 = YEAR_2000_NS + 820_000_000 * SECOND_NS;

/// Decimals of the values: three as from a sensor, or all that a computed double has.
#[derive(Clone, Copy, PartialEq)]
enum Digits {
    Few,
    All,
}

struct Body {
    name: &'static str,
    entity_count: u64,
    digits: Digits,
    /// Bytes between tokens: none, or what Python's `json.dumps` puts there.
    space: &'static str,
}

const BODIES: [Body; 4] = [
    Body { name: "100_entities", entity_count: 100, digits: Digits::Few, space: "" },
    Body { name: "1000_entities", entity_count: 1_000, digits: Digits::Few, space: "" },
    Body { name: "long_numbers", entity_count: 1_000, digits: Digits::All, space: "" },
    Body { name: "spaces", entity_count: 1_000, digits: Digits::Few, space: " " },
];

/// Reproducible noise.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        f64::from(u32::try_from(self.0 >> 32).expect("32 bits")) / 4_294_967_296.0 * bound
    }
}

impl Body {
    fn render(&self) -> Vec<u8> {
        let mut noise = Noise(1);
        let mut out = String::from("[");
        let s = self.space;
        for record in 0..RECORD_COUNT {
            let entity = record % self.entity_count;
            let mut time = Vec::new();
            write_rfc3339(&mut time, START_NS + i64::try_from(record).expect("small") * 1_000_000);
            let time = String::from_utf8(time).expect("ASCII");
            if record > 0 {
                write!(out, ",{s}").expect("memory");
            }
            write!(
                out,
                "{{\"measurement\":{s}\"satellite\",{s}\"time\":{s}\"{time}\",{s}\"tags\":{s}{{\
                 \"entity_id\":{s}\"sat-{entity:05}\",{s}\"entity_type\":{s}\"satellite\",{s}\
                 \"plane\":{s}\"p{:02}\",{s}\"operator\":{s}\"northern-sky\"}},{s}\"fields\":{s}{{",
                entity % 24
            )
            .expect("memory");
            let names = ["lat", "lon", "altitude_km", "utilization", "snr_db"];
            for (name, bound) in names.into_iter().zip([90.0, 180.0, 1_200.0, 1.0, 30.0]) {
                let comma = if name == "lat" { "" } else { "," };
                let gap = if name == "lat" { "" } else { s };
                let value = noise.below(bound) - bound / 3.0;
                match self.digits {
                    Digits::Few => write!(out, "{comma}{gap}\"{name}\":{s}{value:.4}"),
                    Digits::All => write!(out, "{comma}{gap}\"{name}\":{s}{value}"),
                }
                .expect("memory");
            }
            out.push_str("}}");
        }
        out.push(']');
        out.into_bytes()
    }
}

fn parse(body: &[u8], names: &RawKeyCache) -> Batch {
    let ingest_ns = START_NS + 3_600 * SECOND_NS;
    parse_json(body, ParseContext::new(names, &WriteLimits::default(), "acme", ingest_ns))
        .expect("a valid body")
}

/// A cache that knows every series of `body`.
fn known(body: &[u8]) -> RawKeyCache {
    let mut names = RawKeyCache::default();
    for (series, new) in (0..).zip(parse(body, &names).new_series.iter()) {
        names.insert(new.raw_key, series);
    }
    let series = &parse(body, &names).tables[0].series;
    assert!(series.iter().all(|&series| series < NEW_SERIES_BASE));
    names
}

/// The records of a body as a `WriteRequest`, in the order in which the generated classes write.
fn message(body: &Body) -> Vec<u8> {
    let mut noise = Noise(1);
    let mut out = Vec::new();
    for record in 0..PROTOBUF_RECORD_COUNT {
        let entity = record % body.entity_count;
        let mut parts = delimited(1, b"satellite");
        let seconds = START_NS.cast_unsigned() / SECOND_NS.cast_unsigned() + record / 1_000;
        let nanos = record % 1_000 * 1_000_000;
        let time = [&[0x08][..], &varint(seconds), &[0x10], &varint(nanos)].concat();
        parts.extend(delimited(2, &time));
        for (key, value) in [
            ("entity_id", format!("sat-{entity:05}")),
            ("entity_type", "satellite".to_owned()),
            ("plane", format!("p{:02}", entity % 24)),
            ("operator", "northern-sky".to_owned()),
        ] {
            let entry = [delimited(1, key.as_bytes()), delimited(2, value.as_bytes())].concat();
            parts.extend(delimited(3, &entry));
        }
        let names = ["lat", "lon", "altitude_km", "utilization", "snr_db"];
        for (name, bound) in names.into_iter().zip([90.0, 180.0, 1_200.0, 1.0, 30.0]) {
            let value = noise.below(bound) - bound / 3.0;
            let value = delimited(2, &[&[0x09][..], &value.to_le_bytes()].concat());
            parts.extend(delimited(4, &[delimited(1, name.as_bytes()), value].concat()));
        }
        out.extend(delimited(1, &parts));
    }
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

fn delimited(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &varint(content.len() as u64), content].concat()
}

fn read(body: &[u8], names: &RawKeyCache) -> Batch {
    let ingest_ns = START_NS + 3_600 * SECOND_NS;
    let limits = WriteLimits { batch_records_max: 10_000, ..WriteLimits::default() };
    parse_protobuf(body, ParseContext::new(names, &limits, "acme", ingest_ns))
        .expect("a valid message")
}

fn protobuf(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse_protobuf");
    group.throughput(Throughput::Elements(PROTOBUF_RECORD_COUNT));
    let body = message(&BODIES[1]);
    if let Some(folder) = std::env::var_os("FLEETCAST_BODIES") {
        let path = std::path::Path::new(&folder).join("1000_entities.binpb");
        std::fs::write(path, &body).expect("a folder for bodies");
    }
    let cold = RawKeyCache::default();
    let mut warm = RawKeyCache::default();
    for (series, new) in (0..).zip(read(&body, &cold).new_series.iter()) {
        warm.insert(new.raw_key, series);
    }
    group.bench_function("warm", |b| b.iter(|| read(black_box(&body), &warm)));
    group.bench_function("cold", |b| b.iter(|| read(black_box(&body), &cold)));
    group.finish();
}

/// Metrics of 100 series, each of ten values, as an agent of Prometheus sends them.
fn remote_write() -> Vec<u8> {
    let mut out = Vec::new();
    for metric in METRICS {
        for entity in 0..METRIC_SERIES {
            let labels = [
                ("__name__", metric.to_owned()),
                ("dc", format!("dc-{}", entity % 3)),
                ("instance", format!("host-{entity:05}")),
                ("job", "node".to_owned()),
                ("rack", format!("r{:02}", entity % 40)),
            ];
            let mut series = Vec::new();
            for (name, value) in labels {
                let label = [delimited(1, name.as_bytes()), delimited(2, value.as_bytes())];
                series.extend(delimited(1, &label.concat()));
            }
            let time = varint(START_NS.cast_unsigned() / 1_000_000);
            let value = f64::from(entity).sqrt().to_le_bytes();
            series.extend(delimited(2, &[&[0x09][..], &value, &[0x10], &time].concat()));
            out.extend(delimited(1, &series));
        }
    }
    out
}

/// The same values of a collector of OpenTelemetry, ten data points of each resource and metric,
/// with attributes in this order.
fn otlp(keys: [&str; 3]) -> Vec<u8> {
    let text = |number, name: &str, value: &str| {
        let value = delimited(2, &delimited(1, value.as_bytes()));
        delimited(number, &[delimited(1, name.as_bytes()), value].concat())
    };
    let mut out = Vec::new();
    for host in 0..METRIC_SERIES / 10 {
        let resource = [text(1, "host.name", &format!("host-{host:05}")), text(1, "job", "node")];
        let mut metrics = Vec::new();
        for metric in METRICS {
            let mut points = Vec::new();
            for core in 0..10 {
                let mut point = Vec::new();
                for key in keys {
                    point.extend(text(7, key, &format!("{key}-{core}")));
                }
                point.push(0x19);
                point.extend(START_NS.to_le_bytes());
                point.push(0x21);
                point.extend(f64::from(host + core).sqrt().to_le_bytes());
                points.extend(delimited(1, &point));
            }
            let named = [delimited(1, metric.as_bytes()), delimited(5, &points)].concat();
            metrics.extend(delimited(2, &named));
        }
        let parts = [delimited(1, &resource.concat()), delimited(2, &metrics)].concat();
        out.extend(delimited(1, &parts));
    }
    out
}

fn metrics(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse_metrics");
    group.throughput(Throughput::Elements(u64::from(METRIC_SERIES) * METRICS.len() as u64));
    let bodies = [
        ("remote_write", Protocol::RemoteWrite, remote_write()),
        ("otlp", Protocol::Otlp, otlp(["core", "mode", "zone"])),
        ("otlp_unsorted", Protocol::Otlp, otlp(["zone", "core", "mode"])),
    ];
    let (mapping, catalog) = (NameRules::default(), Catalog::default());
    let limits = WriteLimits { batch_records_max: 10_000, ..WriteLimits::default() };
    for (name, protocol, body) in bodies {
        let read = |names: &RawKeyCache| {
            let adapter = Adapter { mapping: &mapping, catalog: &catalog };
            let ingest_ns = START_NS + 3_600 * SECOND_NS;
            let context = ParseContext::new(names, &limits, "acme", ingest_ns);
            protocol.parse(black_box(&body), adapter, context).expect("a sound message")
        };
        let (cold, mut warm) = (RawKeyCache::default(), RawKeyCache::default());
        for (series, new) in (0..).zip(read(&cold).new_series.iter()) {
            warm.insert(new.raw_key, series);
        }
        group.bench_function(BenchmarkId::new("warm", name), |b| b.iter(|| read(&warm)));
        group.bench_function(BenchmarkId::new("cold", name), |b| b.iter(|| read(&cold)));
    }
    group.finish();
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse_json");
    group.throughput(Throughput::Elements(RECORD_COUNT));
    for body in BODIES {
        let bytes = body.render();
        if let Some(folder) = std::env::var_os("FLEETCAST_BODIES") {
            let path = std::path::Path::new(&folder).join(body.name).with_extension("json");
            std::fs::write(path, &bytes).expect("a folder for bodies");
        }
        let (warm, cold) = (known(&bytes), RawKeyCache::default());
        group.bench_function(BenchmarkId::new("warm", body.name), |b| {
            b.iter(|| parse(black_box(&bytes), &warm));
        });
        if body.name == "1000_entities" {
            group.bench_function(BenchmarkId::new("cold", body.name), |b| {
                b.iter(|| parse(black_box(&bytes), &cold));
            });
        }
    }
    group.finish();
}

criterion_group!(parsing, benches, protobuf, metrics);
criterion_main!(parsing);
