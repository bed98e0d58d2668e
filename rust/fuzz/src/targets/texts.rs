//! Texts of imports: each record is found again at its reported place, and means the same.

use fleetcast_core::model::fault::BatchRefusal;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::{
    CsvColumn, CsvColumns, CsvField, Format, ParseContext, csv_records, json_records, parse_csv,
};

use crate::cost::Body;

use super::target::Target;
use super::view::{LIMITS, NOW_NS, cost, parse, view, view_of};

pub(super) const JSON: Target = Target {
    name: "jsonl",
    seeds: json_seeds,
    words: &[
        b"{\"measurement\":\"m\",\"time\":\"2026-01-01\",\"fields\":{\"a\":1}}\n",
        b",\"tags\":{\"entity_id\":\"a\"}",
        b"\n",
        b"\r\n",
        b"\"",
        b"{",
        b"}",
        b",",
        b"\xef\xbb\xbf",
        b"\xff",
    ],
    memory_bytes_max: 8 << 20,
    cost: Some(|body| cost(Body::Own(Format::JsonLines, body))),
    run: run_json,
};

pub(super) const CSV: Target = Target {
    name: "csv",
    seeds: csv_seeds,
    words: &[b",", b"\n", b"\r\n", b"\"", b"\"\"", b"2026-01-01", b"1.5", b"nan", b"true", b"\xff"],
    memory_bytes_max: 8 << 20,
    cost: Some(|body| cost(Body::Csv(columns(), body))),
    run: run_csv,
};

fn json_seeds() -> Vec<Vec<u8>> {
    let record =
        r#"{"measurement":"m","time":"2026-01-01","tags":{"entity_id":"a"},"fields":{"a":1}}"#;
    [
        format!("{record}\n{record}\r\n\n {record}"),
        format!("{record}{record}\n[]\n{{\n"),
        String::new(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

fn csv_seeds() -> Vec<Vec<u8>> {
    [
        "2026-01-01,m,a,1.5,true,x\n2026-01-01,m,b,-2,,\"y\"\"\n\"\r\n\n2026-01-02,m,a,nan,,\n",
        "2026-01-01,m,\"a\",x,1,\"open\n1999-01-01,m,,1,,\n2026-01-01,,a,1e999,,\nsoon,m",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn run_json(body: &[u8]) {
    let seen = view_of(Format::JsonLines, body);
    let records = json_records(body);
    check(body, &records);
    let ours = parse(Format::JsonLines, body, &RawKeyCache::default());
    match &ours {
        Ok(batch) => assert_eq!(batch.line_count, line_count(body)),
        // Lines beyond the bound are not read, and may not be JSON.
        Err(BatchRefusal::Faults(_) | BatchRefusal::TooManyRecords { .. }) => return,
        Err(_) => {}
    }
    let texts = records.iter().map(|(start, end, _)| &body[*start..*end]);
    let array = [b"[", &*texts.collect::<Vec<_>>().join(&b","[..]), b"]"].concat();
    assert_eq!(view_of(Format::Json, &array), seen);
}

fn columns() -> CsvColumns {
    let text = |name: &str| CsvField { name: name.to_owned(), field_type: None };
    let field = |name: &str| CsvColumn { field: Some(text(name)), ..CsvColumn::default() };
    CsvColumns {
        cells: vec![
            CsvColumn { is_time: true, ..CsvColumn::default() },
            CsvColumn { is_measurement: true, ..CsvColumn::default() },
            CsvColumn { tags: vec!["entity_id".to_owned()], ..CsvColumn::default() },
            field("x"),
            field("up"),
            field("note"),
        ],
        ..CsvColumns::default()
    }
}

fn run_csv(body: &[u8]) {
    let (records, _) = csv_records(body);
    check(body, &records);
    let parse = |body: &[u8]| {
        parse_csv(
            body,
            &mut columns(),
            ParseContext::new(&RawKeyCache::default(), &LIMITS, "acme", NOW_NS),
        )
    };
    let ours = parse(body);
    let Ok(batch) = &ours else { return };
    assert_eq!(batch.line_count, line_count(body));
    let count = batch.accepted_count as usize + batch.rejected_indices.len();
    assert_eq!(count, records.len());
    let texts = records.iter().map(|(start, end, _)| &body[*start..*end]);
    let again = texts.flat_map(|text| [text, b"\r\n"]).collect::<Vec<_>>().concat();
    assert_eq!(view(&parse(&again), &[]), view(&ours, &[]));
}

/// Checks that records are in order and begin on their reported lines.
fn check(body: &[u8], records: &[(usize, usize, usize)]) {
    let mut before = 0;
    for (start, end, line) in records {
        assert!(before <= *start && start <= end && *end <= body.len());
        assert_eq!(body[..*start].split(|byte| *byte == b'\n').count() - 1, *line);
        before = *end;
    }
}

fn line_count(body: &[u8]) -> usize {
    let ends = body.split(|byte| *byte == b'\n').count() - 1;
    ends + usize::from(!body.is_empty() && !body.ends_with(b"\n"))
}
