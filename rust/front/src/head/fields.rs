//! Header fields: names, values, and the faults that make a head malformed.

use super::refusal::HeadFault;
use super::request_line::is_token;
use super::span::ByteSpan;

const FIELDS_MAX: usize = 100;
const FIELD_BYTES_MAX: usize = 8190;
const USUAL_FIELDS: usize = 16;
const LINE_END: &[u8] = b"\r\n";

/// A field. Its name is in upper case with `_` for `-`. Example: `X_API_KEY` for `X-Api-Key`.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderField {
    pub(super) name: ByteSpan,
    pub(super) value: ByteSpan,
}

/// The fields of a head in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct HeaderFields {
    pub(super) all: Vec<HeaderField>,
    /// True if a name occurs twice.
    pub(super) is_repeated: bool,
    /// True if the client waits for `100 Continue` and its version of HTTP has that status.
    pub(super) expects_continue: bool,
}

/// Reads the fields from `start` up to the empty line, and rewrites their names in `head`.
///
/// The first fault in the order of the fields decides. A field with an underscore in its name is
/// left out, because its rewritten name would equal the name with a hyphen. Example: `X_Api_Key`
/// would pass for `X-Api-Key`.
pub(super) fn read(head: &mut [u8], start: usize) -> Result<HeaderFields, HeadFault> {
    let mut fields =
        HeaderFields { all: Vec::with_capacity(USUAL_FIELDS), ..HeaderFields::default() };
    let mut line_start = start;
    while !head[line_start..].starts_with(LINE_END) {
        if fields.all.len() >= FIELDS_MAX {
            return Err(HeadFault::HeadersTooLarge);
        }
        let line = read_line(head, line_start)?;
        line_start = line.end;
        if line.has_underscore {
            continue;
        }
        let name = line.field.name.of_bytes(head);
        let is_known = fields.all.iter().any(|known| known.name.of_bytes(head) == name);
        match name {
            b"HOST" | b"CONTENT_TYPE" if is_known => return Err(HeadFault::BadRequest),
            b"EXPECT" => {
                if !line.field.value.of_bytes(head).eq_ignore_ascii_case(b"100-continue") {
                    return Err(HeadFault::ExpectationFailed);
                }
                fields.expects_continue = true;
            }
            _ => {}
        }
        fields.is_repeated |= is_known;
        fields.all.push(line.field);
    }
    Ok(fields)
}

struct Line {
    field: HeaderField,
    has_underscore: bool,
    /// Index of the next line.
    end: usize,
}

fn read_line(head: &mut [u8], start: usize) -> Result<Line, HeadFault> {
    let mut has_underscore = false;
    let mut colon = start;
    while let Some(byte) = head.get_mut(colon).filter(|byte| is_token(**byte)) {
        has_underscore |= *byte == b'_';
        *byte = if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
        colon += 1;
    }
    if colon == start || head.get(colon) != Some(&b':') {
        return Err(HeadFault::BadRequest);
    }
    let rest = &head[colon + 1..];
    let printable = rest.iter().take_while(|byte| is_of_value(**byte)).count();
    let is_clean = rest[printable..].starts_with(LINE_END);
    let bytes = printable + line_bytes(&rest[printable..]).ok_or(HeadFault::BadRequest)?;
    let end = colon + 1 + bytes + LINE_END.len();
    if matches!(head.get(end), Some(b' ' | b'\t')) {
        return Err(HeadFault::BadRequest); // obsolete folding
    }
    if !is_clean {
        return Err(match &head[start..colon] {
            b"CONTENT_LENGTH" if !has_underscore => HeadFault::InvalidContentLength,
            _ => HeadFault::BadRequest,
        });
    }
    if end - start > FIELD_BYTES_MAX {
        return Err(HeadFault::HeadersTooLarge);
    }
    let field =
        HeaderField { name: ByteSpan::of(start..colon), value: trimmed(head, colon + 1, end - 2) };
    Ok(Line { field, has_underscore, end })
}

/// Count of the bytes before the first line end.
fn line_bytes(bytes: &[u8]) -> Option<usize> {
    bytes.windows(LINE_END.len()).position(|pair| pair == LINE_END)
}

/// Returns true if a value may contain `byte`: any byte but controls (RFC 9110, 5.5).
fn is_of_value(byte: u8) -> bool {
    (byte >= b' ' && byte != 0x7f) || byte == b'\t'
}

/// Returns `start..end` without the spaces and tabs around it.
fn trimmed(head: &[u8], mut start: usize, mut end: usize) -> ByteSpan {
    let is_space = |index: usize| matches!(head[index], b' ' | b'\t');
    while start < end && is_space(start) {
        start += 1;
    }
    while start < end && is_space(end - 1) {
        end -= 1;
    }
    ByteSpan::of(start..end)
}

/// Joins all fields of one name into one field, at the place of the first. The values are joined by
/// commas. Example: `A: 1`, `B: 2`, `A: 3` become `A: 1,3` and `B: 2`.
pub(super) fn join_repeated(head: &mut Vec<u8>, fields: &[HeaderField]) -> Vec<HeaderField> {
    let mut joined: Vec<HeaderField> = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let same = |other: &&HeaderField| other.name.of_bytes(head) == field.name.of_bytes(head);
        if fields[..index].iter().any(|known| same(&known)) {
            continue;
        }
        let values: Vec<&[u8]> =
            fields[index..].iter().filter(same).map(|other| other.value.of_bytes(head)).collect();
        let mut value = field.value;
        if values.len() > 1 {
            let text = values.join(&b',');
            value = ByteSpan::of(head.len()..head.len() + text.len());
            head.extend_from_slice(&text);
        }
        joined.push(HeaderField { name: field.name, value });
    }
    joined
}
