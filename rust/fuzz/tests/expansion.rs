//! Costs of what a body says once: bodies that say something long and refer to it often.
//!
//! All cases are one test, because the memory of the whole process is counted.

use std::fmt::Write;

use fleetcast_core::model::limits::{CALL_RECORDS_MAX, WriteLimits};
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::wire::{
    Backslashes, CsvColumn, CsvColumns, CsvField, Format, NameRules, Precision, Protocol, Rule,
};
use fleetcast_fuzz::cost::{Body, COST_PER_BYTE_MAX, cost_of};

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;

/// Bytes that any body may cost, however short.
const COST_CONSTANT: usize = 48 << 20;

/// A field whose value is a message or a text.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(0x80 | u8::try_from(length & 0x7f).expect("seven bits"));
        length >>= 7;
    }
    bytes.push(u8::try_from(length).expect("seven bits"));
    bytes.extend_from_slice(content);
    bytes
}

fn word(number: u8, value: u64) -> Vec<u8> {
    [&[number << 3 | 1][..], &value.to_le_bytes()].concat()
}

fn words(values: impl Iterator<Item = u64>) -> Vec<u8> {
    values.flat_map(u64::to_le_bytes).collect()
}

fn attribute(number: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
    message(number, &[message(1, name), message(2, &message(1, value))].concat())
}

/// An OTLP message: one metric of a resource with these attributes.
fn otlp(attributes: &[u8], name: &str, kind: u8, points: &[Vec<u8>]) -> Vec<u8> {
    let points: Vec<u8> = points.iter().flat_map(|point| message(1, point)).collect();
    let metric = [message(1, name.as_bytes()), message(kind, &points)].concat();
    let scope = message(2, &message(2, &metric));
    message(1, &[message(1, attributes), scope].concat())
}

fn time() -> Vec<u8> {
    word(3, NOW_NS.cast_unsigned())
}

/// 100 points without a place in the store, of a metric whose name has 2 MB (fault A1).
fn long_name() -> Vec<u8> {
    otlp(&[], &"n".repeat(2_000_000), 11, &vec![Vec::new(); 100])
}

/// Points whose buckets each have a bound of 300 digits, `bounds` of them a point (fault A2).
fn buckets(points: u64, bounds: u64, name: &str) -> Vec<u8> {
    let point = |at: u64| {
        let numbers = (at * bounds..(at + 1) * bounds).map(|at| 1e-300_f64.to_bits() + at);
        let counts = words((0..bounds).map(|_| 1));
        [time(), message(6, &counts), message(7, &words(numbers))].concat()
    };
    otlp(&[], name, 9, &(0..points).map(point).collect::<Vec<_>>())
}

/// `records` lines of `width` fields each, all of another name.
fn lines(records: usize, width: usize) -> Vec<u8> {
    let mut text = String::new();
    for record in 0..records {
        text.push_str("m ");
        for field in 0..width {
            let separator = if field == 0 { "" } else { "," };
            write!(text, "{separator}{:x}=1", record * width + field).expect("memory");
        }
        text.push('\n');
    }
    text.into_bytes()
}

/// Points of series of their own, of one resource with 64 tags of `tag_bytes` each (fault A4).
fn shared_resource(points: usize, tag_bytes: usize) -> Vec<u8> {
    let value = "v".repeat(tag_bytes);
    let attributes: Vec<u8> = (0..63)
        .flat_map(|at: u8| attribute(1, at.to_string().as_bytes(), value.as_bytes()))
        .collect();
    let point = |at: usize| {
        let own = attribute(7, b"i", at.to_string().as_bytes());
        [own, time(), word(4, 1.0_f64.to_bits())].concat()
    };
    otlp(&attributes, "m", 5, &(0..points).map(point).collect::<Vec<_>>())
}

/// Distinct fields of JSON, in as few bytes as can be.
fn json_fields() -> Vec<u8> {
    let record = |at: usize| {
        let fields: Vec<_> =
            (at * 1_000..(at + 1) * 1_000).map(|at| format!("\"{at:x}\":1")).collect();
        let fields = fields.join(",");
        format!("{{\"measurement\":\"m\",\"time\":\"2026-01-01\",\"fields\":{{{fields}}}}}")
    };
    format!("[{}]", (0..99).map(record).collect::<Vec<_>>().join(",")).into_bytes()
}

/// As many measurements as records.
fn json_measurements() -> Vec<u8> {
    let record = |at: usize| {
        format!("{{\"measurement\":\"{at:x}\",\"time\":\"2026-01-01\",\"fields\":{{\"a\":1}}}}")
    };
    format!("[{}]", (0..9_999).map(record).collect::<Vec<_>>().join(",")).into_bytes()
}

/// Rows whose tags have long names, which only the header says.
fn csv() -> (CsvColumns, Vec<u8>) {
    let cell = |tag: String| CsvColumn { tags: vec![tag], ..CsvColumn::default() };
    let field = CsvField { name: "x".to_owned(), field_type: None };
    let mut cells = vec![
        CsvColumn { is_time: true, ..CsvColumn::default() },
        CsvColumn { is_measurement: true, ..CsvColumn::default() },
        CsvColumn { field: Some(field), ..CsvColumn::default() },
    ];
    cells.extend((0..60).map(|at| cell(format!("{at}{}", "t".repeat(1_000)))));
    let row = |at: usize| format!("2026-01-01,m,1,{at}{}\n", ",".repeat(59));
    (CsvColumns { cells, ..CsvColumns::default() }, (0..9_999).map(row).collect::<String>().into())
}

#[test]
fn no_body_costs_more_than_64_times_its_bytes_and_a_constant() {
    let plain = NameRules::default();
    let prefix = Rule { prefix: "p".repeat(400), ..Rule::default() };
    let prefixed = NameRules::new([], prefix);
    let adapted = |name, protocol, mapping, bytes| (name, protocol, mapping, bytes);
    let lines_of = Protocol::Lines(Precision::Auto, Backslashes::Paired);
    let limits = WriteLimits { batch_records_max: CALL_RECORDS_MAX, ..WriteLimits::default() };
    let mut failed = Vec::new();
    let mut judge = |name: &str, length: usize, body: Body<'_>| {
        let (cost, outcome) = cost_of(body, &limits, NOW_NS);
        let is_taken = outcome.is_ok();
        println!("{name}: {length} bytes, {cost:?}, taken: {is_taken} {outcome:?}");
        if cost.max() > COST_PER_BYTE_MAX * length + COST_CONSTANT {
            failed.push(format!("{name}: {length} bytes, {cost:?}"));
        }
    };
    for (name, protocol, mapping, bytes) in [
        adapted("A1, a long name", Protocol::Otlp, &plain, long_name()),
        adapted("A2, wide points", Protocol::Otlp, &plain, buckets(24, 4_000, "m")),
        adapted("A2, many points", Protocol::Otlp, &plain, buckets(9_000, 10, "m")),
        adapted("A2, a long name", Protocol::Otlp, &plain, buckets(1, 2_000, &"n".repeat(65_000))),
        adapted("A3, a long prefix", lines_of, &prefixed, lines(99, 1_000)),
        adapted("A3, in metrics", Protocol::Otlp, &prefixed, buckets(24, 4_000, "m")),
        adapted("A4, long tags", Protocol::Otlp, &plain, shared_resource(9_999, 1_000)),
        adapted("A4, more than 64 KiB", Protocol::Otlp, &plain, shared_resource(9_999, 2_000)),
        adapted("A4, usual tags", Protocol::Otlp, &plain, shared_resource(8_192, 8)),
    ] {
        judge(name, bytes.len(), Body::Adapted(protocol, mapping, &bytes));
    }
    for (name, format, bytes) in [
        ("JSON, fields", Format::Json, json_fields()),
        ("JSON, measurements", Format::Json, json_measurements()),
        ("lines, fields", Format::Lines(Precision::Auto), lines(99, 1_000)),
    ] {
        judge(name, bytes.len(), Body::Own(format, &bytes));
    }
    let (header, bytes) = csv();
    judge("CSV, a long header", bytes.len(), Body::Csv(header, &bytes));
    assert!(failed.is_empty(), "{failed:#?}");
}
