//! Compares `parse_lines` with the parser of `InfluxData`: both must agree on the meaning of lines.
//!
//! Records that the other parser reads are written again with as few backslashes as possible, and
//! must mean the same. The other parser is stricter about texts that end in a backslash, and about
//! control characters outside of quotes. Texts that it refuses are skipped.

use std::fmt::Write;

use fleetcast_core::model::batch::ParseResult;
use fleetcast_core::model::fault::{BatchRefusal, FaultCode};
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::{Format, Precision};
use influxdb_line_protocol::{FieldValue, ParsedLine, parse_lines, split_lines};

use crate::cost::Body;

use super::target::Target;
use super::view::{cost, parse, view_of};

const LINES: Format = Format::Lines(Precision::Nanoseconds);

pub(super) const TARGET: Target = Target {
    name: "line",
    seeds,
    words: &[
        b"m,entity_id=a x=1 ",
        b",tenant=b",
        b"1790000000000000000",
        b"946684799999999999",
        b"9223372036854775808",
        b"\\ ",
        b"\\,",
        b"\\=",
        b"\\\\",
        b"\\\"",
        b"\"",
        b"1i",
        b"1u",
        b"-1.5e-7",
        b"1e400",
        b"true",
        b"FALSE",
        b"=",
        b",",
        b" ",
        b"\n",
        b"\r\n",
        b"#",
    ],
    memory_bytes_max: 8 << 20,
    cost: Some(|body| cost(Body::Own(LINES, body))),
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    [
        "",
        "# none\n\nm x=1\r\n",
        "link,entity_id=a,site=x snr_db=1.5,up=t 1789999999000000000\n\
         link,entity_id=b,site=x snr_db=-2,up=F 1789999999000000001\n\
         link,entity_id=a,site=x snr_db=3e2,note=\"text\" 1789999999000000002\n",
        r#"m\ \,x,entity\ id=a\,b\=c\\ f\ 1="a \"b\" \\ c",g=7i,h=9u,i=true"#,
        "m,a=,a=b x=1\n,t=1 x=1\nm =1\nm x\nm x=1 y\nm x=9223372036854775808u",
        "m x=1\nm x=t\nm,a=1,b=1,c=1,d=1,e=1 x=1",
        "m a=1,b=2,c=3,d=4,e=5,f=6\nm g=1,h=2,i=3,j=4\nm a=1,b=2,c=3,d=4,e=5,f=6,g=7",
        "m x=\"two\nlines\" 1789999999000000000\nm x=\"and # one\"",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn run(body: &[u8]) {
    let seen = view_of(LINES, body);
    let Ok(text) = std::str::from_utf8(body) else {
        assert!(parse(LINES, body, &RawKeyCache::default()).is_err());
        return;
    };
    let Ok(lines) = parse_lines(text).collect::<Result<Vec<_>, _>>() else { return };
    let ours = parse(LINES, body, &RawKeyCache::default());
    if differs_in_lines(text) || is_stricter(&ours, text, &lines) {
        return;
    }
    if lines.iter().any(has_infinite) {
        assert!(ours.is_err(), "no finite number, and accepted");
        return;
    }
    let again: String = lines.iter().map(written_again).collect();
    assert_eq!(view_of(LINES, again.as_bytes()), seen, "{again}");
}

/// Writes a line as the other parser reads it.
fn written_again(line: &ParsedLine<'_>) -> String {
    let mut out = String::new();
    out.push_str(&escaped(line.series.measurement.as_str(), ", \\"));
    for (key, value) in line.series.tag_set.iter().flatten() {
        let (key, value) = (escaped(key.as_str(), ",= \\"), escaped(value.as_str(), ",= \\"));
        write!(out, ",{key}={value}").expect("memory");
    }
    for (at, (name, value)) in line.field_set.iter().enumerate() {
        let before = if at == 0 { ' ' } else { ',' };
        write!(out, "{before}{}=", escaped(name.as_str(), ",= \\")).expect("memory");
        match value {
            FieldValue::I64(value) => write!(out, "{value}i"),
            FieldValue::U64(value) => write!(out, "{value}u"),
            FieldValue::F64(value) => write!(out, "{value:e}"),
            FieldValue::Boolean(value) => write!(out, "{value}"),
            FieldValue::String(text) => write!(out, "\"{}\"", escaped(text.as_str(), "\"\\")),
        }
        .expect("memory");
    }
    if let Some(time) = line.timestamp {
        write!(out, " {time}").expect("memory");
    }
    out.push('\n');
    out
}

fn escaped(text: &str, marks: &str) -> String {
    let escapes = text.chars().flat_map(|character| {
        marks.contains(character).then_some('\\').into_iter().chain([character])
    });
    escapes.collect()
}

fn has_infinite(line: &ParsedLine<'_>) -> bool {
    let values = line.field_set.iter().map(|(_, value)| value);
    values.into_iter().any(|value| matches!(value, FieldValue::F64(value) if value.is_infinite()))
}

/// Returns true if we refuse lines that the other parser accepts: keys that come twice, commas in
/// keys without a backslash, and commas after the last tag or field.
fn is_stricter(ours: &ParseResult, text: &str, lines: &[ParsedLine<'_>]) -> bool {
    let Err(BatchRefusal::Faults(faults)) = ours else { return false };
    let has_comma = lines.iter().any(|line| {
        let tags = line.series.tag_set.iter().flatten().map(|(key, _)| key);
        let fields = line.field_set.iter().map(|(name, _)| name);
        tags.chain(fields).any(|key| key.as_str().contains(','))
    });
    let ends_with_comma = text.contains(", ") || text.lines().any(|line| line.ends_with(','));
    faults.iter().any(|fault| match fault.code {
        FaultCode::DuplicateKey => true,
        FaultCode::LineInvalid => has_comma || ends_with_comma,
        _ => false,
    })
}

/// Returns true if the other parser ends lines at other bytes: it allows quotes anywhere, and a
/// carriage return is not part of its line ends.
fn differs_in_lines(text: &str) -> bool {
    text.contains('\r') || split_lines(text).count() != text.split('\n').count()
}
