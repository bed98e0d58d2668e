//! Readers of other protocols. Lines that are rejected one by one are compared with lines that are
//! refused together. Messages of Prometheus and OpenTelemetry must mean the same with every cache.

use fleetcast_core::model::batch::ParseResult;
use fleetcast_core::model::catalog::Catalog;
use fleetcast_core::model::fault::BatchRefusal;
use fleetcast_core::model::limits::FAULTS_MAX;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::{
    Adapter, Backslashes, Format, NameRules, ParseContext, Precision, Protocol, Rule, line_records,
};

use crate::cost::Body;

use super::target::Target;
use super::view::{LIMITS, NOW_NS, View, cache_of, cost, parse, view};

const MEMORY_BYTES_MAX: usize = 8 << 20;

pub(super) const LINES: Target = Target {
    name: "adapted",
    seeds: line_seeds,
    words: &[
        b"m,host=a x=1 ",
        b"cpu,host=a x=t ",
        b",entity_id=b",
        b"1790000000000000000",
        b"5",
        b"\xff",
        b"\"",
        b"\\ ",
        b"nan",
        b"\n",
        b"\r\n",
        b"#",
        b" ",
        b",",
        b"=",
    ],
    memory_bytes_max: MEMORY_BYTES_MAX,
    cost: Some(|body| {
        cost(Body::Adapted(
            Protocol::Lines(Precision::Nanoseconds, Backslashes::Paired),
            &mapping(),
            body,
        ))
    }),
    run: lines,
};

pub(super) const REMOTE_WRITE: Target = Target {
    name: "prometheus",
    seeds: remote_write_seeds,
    words: MESSAGE_WORDS,
    memory_bytes_max: MEMORY_BYTES_MAX,
    cost: Some(|body| cost(Body::Adapted(Protocol::RemoteWrite, &mapping(), body))),
    run: |body| drop(read(Protocol::RemoteWrite, body)),
};

pub(super) const OTLP: Target = Target {
    name: "otlp",
    seeds: otlp_seeds,
    words: MESSAGE_WORDS,
    memory_bytes_max: MEMORY_BYTES_MAX,
    cost: Some(|body| cost(Body::Adapted(Protocol::Otlp, &mapping(), body))),
    run: |body| drop(read(Protocol::Otlp, body)),
};

const MESSAGE_WORDS: &[&[u8]] = &[
    b"\x0a",
    b"\x12",
    b"\x2a",
    b"\x3a",
    b"\x4a",
    b"\x52",
    b"\x19",
    b"\x21",
    b"\x09",
    b"\x10",
    b"\x0a\x08__name__\x12\x01m",
    b"\x0a\x01a\x12\x01b",
    b"\x0a\x01a\x12\x03\x0a\x01b",
    b"\x00\x00\x00\x00\x00\x00\xf8\x7f",
    b"\xff\xff\xff\xff\x0f",
];

fn line_seeds() -> Vec<Vec<u8>> {
    [
        &b"cpu,host=a x=1 1789999999000000000\ncpu,host=b x=2 1789999999000000000\n"[..],
        b"m,host=a x=1\nm x\n\nm,host=a x=t 5\nm,host=a x=\"two\nlines\"\nm,host=a x=\xff\nm x=2",
        b"m,a=1,b=1,c=1,d=1,e=1 x=1\nm a=1,b=2,c=3,d=4,e=5,f=6,g=7\n\xef\xbb\xbfm x=1\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("seeds are short");
    assert!(length < 0x80);
    [&[number << 3 | 2, length], content].concat()
}

fn word(number: u8, value: u64) -> Vec<u8> {
    [&[number << 3 | 1][..], &value.to_le_bytes()].concat()
}

fn remote_write_seeds() -> Vec<Vec<u8>> {
    let label =
        |name: &[u8], value: &[u8]| message(1, &[message(1, name), message(2, value)].concat());
    let time = b"\x10\x80\xe0\xab\xbb\x8c\x34";
    let sample = |value: f64| message(2, &[word(1, value.to_bits()), time.to_vec()].concat());
    let series = |parts: &[Vec<u8>]| message(1, &parts.concat());
    let named = |name: &[u8]| label(b"__name__", name);
    vec![
        series(&[named(b"m"), label(b"instance", b"a"), sample(1.0)]),
        series(&[label(b"z", b""), named(b"m"), label(b"b", b"c"), sample(1.0), sample(2.0)]),
        [series(&[named(b"m"), sample(f64::NAN)]), series(&[named(b"n"), message(4, b"")])]
            .concat(),
    ]
}

fn otlp_seeds() -> Vec<Vec<u8>> {
    let text = |number, name: &[u8], value: &[u8]| {
        message(number, &[message(1, name), message(2, &message(1, value))].concat())
    };
    let time = || word(3, NOW_NS.cast_unsigned());
    let gauge = [text(7, b"core", b"0"), time(), word(4, 1.5f64.to_bits())].concat();
    let words = |values: [u64; 2]| values.map(u64::to_le_bytes).concat();
    let histogram = [
        time(),
        word(4, 3),
        word(5, 2.5f64.to_bits()),
        message(6, &words([1, 2])),
        message(7, &words([1.0f64.to_bits(), 2.0f64.to_bits()])),
    ];
    let metric = |kind, point: &[u8]| {
        message(2, &[message(1, b"m"), message(kind, &message(1, point))].concat())
    };
    [metric(5, &gauge), metric(7, &gauge), metric(9, &histogram.concat()), metric(11, b"")]
        .map(|metric| {
            let resource = message(1, &text(1, b"host.name", b"a"));
            message(1, &[resource, message(2, &metric)].concat())
        })
        .to_vec()
}

fn mapping() -> NameRules {
    let rule = Rule { prefix: "p_".to_owned(), entity: Some("host".to_owned()), ..Rule::default() };
    // Lines without a rule for their name keep their entity.
    let others = Rule { entity: Some("entity_id".to_owned()), ..Rule::default() };
    NameRules::new([("cpu".to_owned(), rule)], others)
}

fn parse_with(
    protocol: Protocol,
    body: &[u8],
    mapping: &NameRules,
    (catalog, names): (&Catalog, &RawKeyCache),
) -> ParseResult {
    let adapter = Adapter { mapping, catalog };
    protocol.parse(body, adapter, ParseContext::new(names, &LIMITS, "acme", NOW_NS))
}

/// Reads `body` with a cold, a warm and a half warm cache. All views must be equal, except for the
/// order of series.
fn read(protocol: Protocol, body: &[u8]) -> (ParseResult, View) {
    let mapping = mapping();
    let nothing = (&Catalog::default(), &RawKeyCache::default());
    let cold = parse_with(protocol, body, &mapping, nothing);
    let seen = view(&cold, &[]);
    if let Ok(batch) = &cold {
        assert!(batch.conflict.is_none(), "a conflict rejects its record");
        assert!(batch.dropped.len() <= batch.rejected_indices.len().min(FAULTS_MAX));
        assert!(batch.rejected_indices.is_sorted_by(|one, next| one < next));
        for step in [1, 2] {
            let (cache, names) = cache_of(batch, step);
            let mut catalog = Catalog::default();
            (0..).zip(&names).for_each(|(id, name)| catalog.insert_series(id, name.view()));
            let warm = parse_with(protocol, body, &mapping, (&catalog, &cache));
            let (warm, cold) = (view(&warm, &names).ordered(), view(&cold, &[]).ordered());
            assert_eq!(warm, cold, "a warm cache changes what is read");
        }
    }
    (cold, seen)
}

/// Without a mapping, the lines that are not rejected must mean the same on their own.
fn lines(body: &[u8]) {
    let protocol = Protocol::Lines(Precision::Nanoseconds, Backslashes::Paired);
    let (parsed, seen) = read(protocol, body);
    let Ok(batch) = parsed else {
        assert!(matches!(parsed, Err(BatchRefusal::TooManyRecords { .. })));
        return;
    };
    let (records, _) = line_records(body);
    let is_kept = |at: &usize| !batch.rejected_indices.iter().any(|index| *index as usize == *at);
    let kept: Vec<_> = (0..records.len()).filter(is_kept).collect();
    let kept =
        kept.iter().filter_map(|at| records.get(*at)).map(|(start, end, _)| &body[*start..*end]);
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len(), batch.accepted_count as usize);
    // A byte order mark is part of a name unless it begins the body.
    if kept.iter().any(|line| line.starts_with(b"cpu") || line.starts_with(b"\xef\xbb\xbf")) {
        return;
    }
    let kept = kept.join(&b'\n');
    let plain =
        view(&parse(Format::Lines(Precision::Nanoseconds), &kept, &RawKeyCache::default()), &[]);
    match (plain, seen) {
        (
            View::Accepted { tables, clamped, .. },
            View::Accepted { tables: ours, clamped: other, .. },
        ) => {
            assert_eq!((tables, clamped), (ours, other));
        }
        (plain, View::TooManyFields { .. }) => assert!(matches!(plain, View::TooManyFields { .. })),
        (plain, seen) => panic!("{plain:?} {seen:?}"),
    }
}
