//! A record means the same whether it is read by the rules or by a template.
//!
//! Records with all kinds of differences come first in a body, where no template is known, and last,
//! after two records that they resemble. Both bodies must be answered alike, whether their series are
//! known or not.

use super::messages::{Record, Sent, delimited, encode, entry, integer};
use crate::model::batch::{Batch, NEW_SERIES_BASE, ParseResult, Rows, Values};
use crate::model::fault::{FaultCode, Refusal};
use crate::model::limits::WriteLimits;
use crate::model::names::SeriesName;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::{SECOND_NS, YEAR_2000_NS, write_rfc3339};
use crate::wire::ParseContext;
use crate::wire::{Format, Precision};

const NOW_NS: i64 = YEAR_2000_NS + 823_176_000 * SECOND_NS;

const LINES: Format = Format::Lines(Precision::Nanoseconds);

/// Joins records to a body.
type Join = fn(&[&[u8]]) -> Vec<u8>;

fn json_array(records: &[&[u8]]) -> Vec<u8> {
    [b"[", &*records.join(&b","[..]), b"]"].concat()
}

fn protobuf_message(records: &[&[u8]]) -> Vec<u8> {
    records.iter().flat_map(|record| delimited(1, record)).collect()
}

fn lines(records: &[&[u8]]) -> Vec<u8> {
    records.join(&b"\n"[..])
}

fn parse(format: Format, body: &[u8], names: &RawKeyCache) -> ParseResult {
    format.parse(body, ParseContext::new(names, &WriteLimits::default(), "acme", NOW_NS))
}

/// Content of an answer, less the positions in the batch; known series look like new ones.
fn meaning(answer: ParseResult, known: &[SeriesName]) -> Vec<String> {
    let batch = match answer {
        Ok(batch) => batch,
        Err(Refusal::Faults(faults)) if faults[0].code == FaultCode::JsonInvalid => {
            return vec!["no JSON".to_owned()];
        }
        Err(Refusal::Faults(mut faults)) => {
            for fault in &mut faults {
                fault.loc.remove(0);
            }
            let mut words: Vec<_> = faults.iter().map(|fault| format!("{fault:?}")).collect();
            words.sort();
            return words;
        }
        Err(refusal) => return vec![format!("{refusal:?}")],
    };
    if let Some(conflict) = batch.conflict {
        return vec![format!("conflict: {}", conflict.field)];
    }
    let counts = (batch.accepted_count, batch.rejected_indices.len(), batch.clamped_count);
    let mut words = rows(&batch, known);
    words.sort();
    words.push(format!("{counts:?}"));
    words
}

fn rows(batch: &Batch, known: &[SeriesName]) -> Vec<String> {
    let mut rows = Vec::new();
    for table in &batch.tables {
        for row in 0..table.row_count() {
            let name = match table.series[row].checked_sub(NEW_SERIES_BASE) {
                Some(new) => &batch.new_series.get(new as usize).unwrap().name.to_name(),
                None => &known[table.series[row] as usize],
            };
            let cells = table.columns.iter().filter_map(|column| {
                let at = match &column.rows {
                    Rows::All => row,
                    Rows::Some(rows) => rows.iter().position(|some| *some as usize == row)?,
                };
                let value = match &column.values {
                    Values::Float(values) => format!("{:?}", values[at]),
                    Values::Bool(values) => format!("{:?}", values[at]),
                    Values::Text(values) => format!("{:?}", values[at]),
                };
                Some(format!("{}={value}", batch.fields[column.field as usize].name))
            });
            let mut cells: Vec<_> = cells.collect();
            cells.sort();
            rows.push(format!("{name:?} {} {cells:?}", table.times_ns[row]));
        }
    }
    rows
}

/// Checks each of `changed` after `like`.
fn check(format: Format, join: Join, like: [&[u8]; 3], changed: &[Vec<u8>]) {
    let all = parse(format, &join(&like), &RawKeyCache::default()).unwrap();
    assert_eq!((all.accepted_count, all.conflict), (3, None));
    let known: Vec<_> = all.new_series.iter().map(|new| new.name.to_name()).collect();
    let mut warm = RawKeyCache::default();
    for (series, new) in (0..).zip(all.new_series.iter()) {
        warm.insert(new.raw_key, series);
    }
    let mut accepted_count = 0;
    for record in changed {
        for names in [&RawKeyCache::default(), &warm] {
            let first = parse(format, &join(&[record, like[0], like[1]]), names);
            let last = parse(format, &join(&[like[0], like[1], record]), names);
            accepted_count += usize::from(last.is_ok());
            let (first, last) = (meaning(first, &known), meaning(last, &known));
            assert_eq!(first, last, "{}", String::from_utf8_lossy(record));
        }
    }
    assert!(accepted_count > changed.len() / 20, "{accepted_count} of {}", changed.len());
}

/// Room that the columns of a batch have, in values and in the rows of values.
fn room(batch: &Batch) -> usize {
    let columns = batch.tables.iter().flat_map(|table| &table.columns);
    columns
        .map(|column| {
            let rows = match &column.rows {
                Rows::All => 0,
                Rows::Some(rows) => rows.capacity(),
            };
            rows + match &column.values {
                Values::Float(values) => values.capacity(),
                Values::Bool(values) => values.capacity(),
                Values::Text(values) => values.capacity(),
            }
        })
        .sum()
}

/// Records whose first may lack a field that later ones have, in every order of the fields, and then
/// with a field too many.
#[test]
fn the_fields_of_json_records_come_in_any_order_and_some_are_absent() {
    let fields = [r#""a":1.5"#, r#""b":true"#, r#""c":-7"#, r#""d":"x""#];
    let mut texts = Vec::new();
    for kept in 1_u32..16 {
        let mut kept: Vec<_> =
            (0..4).filter(|at| kept & 1 << at != 0).map(|at| fields[at]).collect();
        for _ in 0..kept.len() {
            kept.rotate_left(1);
            texts.push(kept.join(","));
            let reversed: Vec<_> = kept.iter().rev().copied().collect();
            texts.push(reversed.join(","));
        }
    }
    let record = |fields: &str, entity: usize| {
        format!(
            r#"{{"measurement":"m","time":"2026-01-31T11:59:01Z","tags":{{"entity_id":"{entity}"}},"fields":{{{fields}}},"k":0}}"#
        )
    };
    for first in 0..texts.len() {
        // The first record decides which template is there for the others.
        let order = (first..texts.len()).chain(0..first);
        let bodies: Vec<_> = order.map(|at| record(&texts[at], at)).collect();
        let body: Vec<_> = bodies.iter().map(String::as_bytes).collect();
        let batch = parse(Format::Json, &json_array(&body), &RawKeyCache::default()).unwrap();
        let alone = bodies.iter().map(|body| {
            let body = json_array(&[body.as_bytes()]);
            let batch = parse(Format::Json, &body, &RawKeyCache::default()).unwrap();
            rows(&batch, &[]).remove(0)
        });
        assert_eq!(rows(&batch, &[]), alone.collect::<Vec<_>>());
        let mut twice = bodies.clone();
        twice.push(record(r#""c":1,"a":2,"b":true,"a":3"#, 99));
        let body: Vec<_> = twice.iter().map(String::as_bytes).collect();
        let refused = parse(Format::Json, &json_array(&body), &RawKeyCache::default());
        assert!(matches!(refused, Err(Refusal::Faults(faults)) if faults.len() == 1));
    }
}

/// One record of 4,096 fields among 999 of one; and records of which no two have a field in common.
#[test]
fn a_batch_takes_memory_by_its_values_and_not_by_rows_times_columns() {
    let fields = |from: u32, count: u32| {
        (from..from + count).map(|field| (format!("f{field}"), Sent::Number(1.5))).collect()
    };
    let record = |fields: Vec<(String, Sent)>| Record {
        measurement: "link".to_owned(),
        time_ns: NOW_NS,
        tags: vec![("entity_id".to_owned(), "a".to_owned())],
        fields,
    };
    let wide_first = (0..1_000).map(|at| fields(0, if at == 0 { 4_096 } else { 1 })).collect();
    let wide_last = (0..1_000).map(|at| fields(0, if at == 999 { 4_096 } else { 1 })).collect();
    let disjoint = (0..1_000).map(|at| fields(at * 20, 20)).collect();
    for records in [wide_first, wide_last, disjoint] {
        let records: Vec<Vec<(String, Sent)>> = records;
        let value_count: usize = records.iter().map(Vec::len).sum();
        let records: Vec<_> = records.into_iter().map(record).collect();
        let texts: Vec<_> = records.iter().map(json).collect();
        let texts: Vec<_> = texts.iter().map(String::as_bytes).collect();
        let in_lines: Vec<_> = records.iter().map(line).collect();
        for (format, body) in [
            (Format::Json, json_array(&texts)),
            (Format::Protobuf, encode(&records)),
            (LINES, in_lines.concat().into_bytes()),
        ] {
            let batch = parse(format, &body, &RawKeyCache::default()).unwrap();
            let stored: usize =
                batch.tables[0].columns.iter().map(|column| column.values.len()).sum();
            assert_eq!(stored, value_count);
            assert!(room(&batch) <= 12 * value_count, "N3: {} of {value_count}", room(&batch));
        }
    }
}

fn line(record: &Record) -> String {
    let fields: Vec<_> = record.fields.iter().map(|(name, _)| format!("{name}=1.5")).collect();
    format!("link,entity_id=a {} {}\n", fields.join(","), record.time_ns)
}

fn json(record: &Record) -> String {
    let mut time = Vec::new();
    write_rfc3339(&mut time, record.time_ns);
    let fields: Vec<_> = record.fields.iter().map(|(name, _)| format!(r#""{name}":1.5"#)).collect();
    format!(
        r#"{{"measurement":"link","time":"{}","tags":{{"entity_id":"a"}},"fields":{{{}}}}}"#,
        String::from_utf8(time).unwrap(),
        fields.join(","),
    )
}

/// `record` with each byte replaced by, followed by or preceded by one of `bytes`, left out, or last.
fn byte_changes(record: &[u8], bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut changed = vec![record.to_vec()];
    for at in 0..record.len() {
        let (before, after) = (&record[..at], &record[at + 1..]);
        changed.push(before.to_vec());
        changed.push([before, after].concat());
        for byte in bytes {
            changed.push([before, &[*byte], after].concat());
            changed.push([before, &[*byte], &record[at..]].concat());
        }
    }
    changed
}

#[test]
fn json_records_that_are_nearly_like_those_before() {
    let record = |entity: &str, time: &str, snr_db: &str| {
        format!(
            r#"{{"measurement":"link","time":"{time}","tags":{{"entity_id":"{entity}"}},"fields":{{"snr_db":{snr_db},"on":true,"note":"x","n":12}}}}"#
        )
    };
    let [a, b, c] = [
        record("a", "2026-01-31T11:59:01.5Z", "1.5"),
        record("b", "2026-01-31T11:59:02.25Z", "-12.125"),
        record("c", "2026-01-31T11:59:03Z", "1e-3"),
    ];
    let mut changed = byte_changes(c.as_bytes(), b"\"\\{}[]:,0-1.eEtfnz \xc3");
    let exchanged = [
        (r#""n":12"#, r#""n":-0.0"#),
        (r#""n":12"#, r#""n":01.5"#),
        (r#""n":12"#, r#""n":1.5e400"#),
        (r#""n":12"#, r#""n":1234567.1234567"#),
        (r#""n":12"#, r#""n":12345678.12345678"#),
        (r#""n":12"#, r#""n":"12""#),
        (r#""n":12"#, r#""n":null"#),
        (r#","n":12"#, ""),
        (r#""n":12"#, r#""n":12,"n":13"#),
        (r#""n":12"#, r#""n":12,"m":13"#),
        (r#""on":true,"note":"x""#, r#""note":"x","on":true"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":-3, "note" : "y" ,"on":false"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12,"on":true,"on":true"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12,"snr_db":7.5"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":true"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12,"note":null"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":1e400"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12,"\u006fn":true"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12,}"#),
        (r#""on":true,"note":"x","n":12"#, r#""n":12}}"#),
        (r#","on":true,"note":"x","n":12"#, ""),
        (r#","on":true,"note":"x","n":12"#, r#","m":[1]"#),
        (r#""on":true"#, r#""on":false"#),
        (r#""note":"x""#, r#""note":"\u0041\"""#),
        (r#""note":"x""#, r#""note":"a rather longer note than before""#),
        (r#""snr_db""#, r#""snr_dbm""#),
        (r#""snr_db""#, r#""snr_d\u0062""#),
        (r#""measurement":"link","#, ""),
        (r#""measurement":"link""#, r#""measurement":"links""#),
        (r#""measurement":"link""#, r#""measurement":"link","measurement":"link""#),
        (r#""measurement":"link""#, r#""measurement":"link","more":[1]"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","entity_id":"c"}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":"{}"}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":"a}"}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":1}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","":"x"}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","tenant":"other"}"#),
        (r#"{"entity_id":"c"}"#, r#"{"entity_id":"\u0063","site":"b"}"#),
        (r#"{"entity_id":"c"}"#, r#"{ "entity_id":"c"}"#),
        (r#"{"entity_id":"c"}"#, "{}"),
        (r#","tags":{"entity_id":"c"}"#, ""),
        ("11:59:03Z", "11:59:03.123456789Z"),
        ("11:59:03Z", "11:59:03.1234567890Z"),
        ("11:59:03Z", "11:59:60Z"),
        ("11:59:03Z", "11:59:03+00:00"),
        ("11:59:03Z", "11:59"),
        ("11:59:03Z", "12:00:03Z"),
        ("2026-01-31T11:59:03Z", "1999-12-31T23:59:59Z"),
    ];
    for (from, to) in exchanged {
        assert!(c.contains(from), "{from}");
        changed.push(c.replace(from, to).into_bytes());
    }
    check(Format::Json, json_array, [a.as_bytes(), b.as_bytes(), c.as_bytes()], &changed);
}

#[test]
fn lines_that_are_nearly_like_those_before() {
    let record = |entity: &str, ago_ns: i64, snr_db: &str| {
        let time_ns = NOW_NS - ago_ns;
        format!(r#"link,entity_id={entity} snr_db={snr_db},on=true,note="x",n=12i,m=7u {time_ns}"#)
    };
    let [a, b, c] = [record("a", 0, "1.5"), record("b", 1_500, "-12.125"), record("c", 7, "1e-3")];
    let mut changed = byte_changes(c.as_bytes(), b"\\ ,=0-1.eEtfiu#\r\t\xc3");
    let exchanged = [
        ("snr_db=1e-3", "snr_db=1"),
        ("snr_db=1e-3", "snr_db=.5"),
        ("snr_db=1e-3", "snr_db=007"),
        ("snr_db=1e-3", "snr_db=1e999"),
        ("snr_db=1e-3", "snr_db=1i"),
        ("snr_db=1e-3", "snr_db=NaN"),
        ("on=true", "on=F"),
        ("on=true", "on=1"),
        (r#"note="x""#, r#"note="a \"longer\" \\ note""#),
        (r#"note="x""#, "note=\"two\nlines\""),
        (r#"note="x""#, "note=x"),
        ("n=12i", "n=-9223372036854775808i"),
        ("n=12i", "n=9223372036854775808i"),
        ("n=12i", "n=12"),
        ("n=12i", "n=1.5i"),
        ("m=7u", "m=-7u"),
        ("m=7u", "m=9223372036854775807u"),
        (",n=12i", ""),
        (",n=12i", ",n=12i,n=13i"),
        (",n=12i", ",n=12i,o=13i"),
        (r#"on=true,note="x""#, r#"note="x",on=true"#),
        ("snr_db=", r"snr\ db="),
        ("entity_id=c", "entity_id=c,entity_id=c"),
        ("entity_id=c", "entity_id=c,site=b"),
        ("entity_id=c", r"entity_id=c\ d\,"),
        ("entity_id=c", "entity_id=c,=x"),
        ("entity_id=c", "entity_id=c,tenant=other"),
        ("entity_id=c", "entity_id="),
        (",entity_id=c", ""),
        ("link,", r"li\,nk,"),
        ("link,", ","),
        (" 177", " 277"),
        (" 177", "   177"),
        (" 177", " -177"),
        (" 177", " 9999999999999177"),
    ];
    let c = c.replace(&(NOW_NS - 7).to_string(), "1769860800000000000");
    let c = c.replace(" 1769", " 177");
    for (from, to) in exchanged {
        assert!(c.contains(from), "{from}");
        changed.push(c.replace(from, to).into_bytes());
    }
    changed.extend(
        [&b"link,entity_id=c"[..], b"link,entity_id=c ", b"# no record"].map(<[u8]>::to_vec),
    );
    // A quote without its fellow takes in the lines after it.
    changed.retain(|line| !line.split(|byte| *byte == b'"').count().is_multiple_of(2));
    let c = record("c", 7, "1e-3");
    check(LINES, lines, [a.as_bytes(), b.as_bytes(), c.as_bytes()], &changed);
}

#[test]
fn protobuf_records_that_are_nearly_like_those_before() {
    let record = |entity: &str, ago_ns: i64, snr_db: f64| Record {
        measurement: "link".to_owned(),
        time_ns: NOW_NS - ago_ns,
        tags: vec![("entity_id".to_owned(), entity.to_owned())],
        fields: vec![
            ("snr_db".to_owned(), Sent::Number(snr_db)),
            ("on".to_owned(), Sent::Bool(true)),
            ("note".to_owned(), Sent::Text("x".to_owned())),
            ("n".to_owned(), Sent::Int(12)),
        ],
    };
    let [a, b, c] = [record("a", 0, 1.5), record("b", 1_500_000_000, 2.0), record("c", 7, -0.0)]
        .map(|record| record.parts());
    let mut changed =
        byte_changes(&c.concat(), &[0, 1, 9, 0x0a, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xff]);
    for at in 0..c.len() {
        let with = |parts: &[Vec<u8>]| [&c[..at], parts, &c[at + 1..]].concat().concat();
        let part = &c[at];
        changed.push(with(&[]));
        changed.push(with(&[part.clone(), part.clone()]));
        changed.push([&c[at..], &c[..at]].concat().concat());
        for unknown in [integer(15, -1), integer(3, 1), delimited(15, b"x"), vec![0x1d, 0, 0, 0, 0]]
        {
            changed.push(with(&[unknown.clone(), part.clone()]));
            changed.push(with(&[part.clone(), unknown]));
        }
        for other in 0..at {
            let mut parts = c.clone();
            parts.swap(at, other);
            changed.push(parts.concat());
        }
        // A length of two bytes where one is enough.
        changed.push(with(&[[&[part[0], part[1] | 0x80, 0], &part[2..]].concat()]));
    }
    let values = [
        Sent::Number(f64::NAN),
        Sent::Number(f64::INFINITY),
        Sent::Int(i64::MIN),
        Sent::Int(1 << 40),
        Sent::Bool(false),
        Sent::Text("a rather longer note than before".to_owned()),
        Sent::Text("x".repeat(200)),
    ];
    for (at, name) in [(3, "snr_db"), (4, "on"), (5, "note"), (6, "n")] {
        for value in values.iter().map(Sent::encode).chain([Vec::new(), vec![0x18, 1]]) {
            let mut parts = c.clone();
            parts[at] = entry(4, name, &value);
            changed.push(parts.concat());
            let twice = [value.clone(), value].concat();
            parts[at] = entry(4, name, &twice);
            changed.push(parts.concat());
        }
    }
    for seconds in [0, YEAR_2000_NS / SECOND_NS - 1, NOW_NS / SECOND_NS + 9, i64::MIN] {
        let mut parts = c.clone();
        parts[1] = delimited(2, &[integer(1, seconds), integer(2, 5)].concat());
        changed.push(parts.concat());
        parts[1] = delimited(2, &[integer(2, -5), integer(1, seconds)].concat());
        changed.push(parts.concat());
    }
    let [a, b, c] = [a, b, c].map(|parts| parts.concat());
    check(Format::Protobuf, protobuf_message, [&a, &b, &c], &changed);
}

#[test]
fn a_message_that_ends_anywhere_else_than_behind_a_record_is_malformed() {
    let parts = |entity: &str| {
        let tags = vec![("entity_id".to_owned(), entity.to_owned())];
        let fields = vec![("snr_db".to_owned(), Sent::Number(1.5))];
        Record { measurement: "link".to_owned(), time_ns: NOW_NS, tags, fields }.parts().concat()
    };
    let records = [parts("a"), parts("b"), parts("c")];
    let body = protobuf_message(&[&records[0], &records[1], &records[2]]);
    let one = body.len() / 3;
    for end in 0..=body.len() {
        let answer = parse(Format::Protobuf, &body[..end], &RawKeyCache::default());
        if end % one == 0 {
            assert_eq!(answer.map(|batch| batch.accepted_count as usize), Ok(end / one));
        } else {
            assert_eq!(answer, Err(Refusal::InvalidInput { field: "payload" }), "L7");
        }
    }
}
