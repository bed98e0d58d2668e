//! Writing JSON answers straight into one buffer.

use crate::model::time;

/// Bytes of one piece of a long answer: few enough for malloc to keep the memory for the next one.
const CHUNK_BYTES: usize = 1 << 20;

/// A long answer in pieces of about a mebibyte. One buffer would be copied as it grows, and be
/// mapped and faulted in anew for each answer.
#[derive(Default)]
pub struct Chunks {
    full: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl Chunks {
    /// The piece to append to. All that is appended before the next call stays in one piece.
    pub fn open(&mut self) -> &mut Vec<u8> {
        if self.open.len() >= CHUNK_BYTES {
            // A little more than is full, for what one call appends.
            let new = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 16);
            self.full.push(std::mem::replace(&mut self.open, new));
        }
        &mut self.open
    }

    /// The pieces, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.full.push(self.open);
        self.full
    }
}

/// Appends `text` as a JSON string, quotes included (RFC 8259, section 7).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // Looks at all bytes without a branch, which the compiler does many at a time.
    if bytes.iter().fold(false, |found, byte| found | is_special(*byte)) {
        write_escaped(out, bytes);
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

/// Tells whether a JSON string holds `text` as it stands.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.bytes().any(is_special)
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn write_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if is_special(byte) {
            out.extend_from_slice(&bytes[plain..at]);
            plain = at + 1;
            write_escape(out, byte);
        }
    }
    out.extend_from_slice(&bytes[plain..]);
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

/// Doubles below this may be written as thousandths: fewer than 15 digits, which are unique.
const THOUSANDTHS_END: f64 = 1e9;

/// Appends a finite double as the shortest text that reads back as the same double.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    debug_assert!(value.is_finite(), "only finite values are stored");
    if let Some(thousandths) = thousandths_of(value) {
        write_thousandths(out, thousandths);
    } else {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    }
}

/// The integer that is `value` in thousandths, if there is one: most telemetry has few decimals.
///
/// Dividing it by 1000 is rounded once, so its text reads back as `value`; and no other text of so
/// few digits does, so it is the shortest.
fn thousandths_of(value: f64) -> Option<i64> {
    if value.abs() >= THOUSANDTHS_END {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 10^12")]
    let thousandths = (value * 1_000.0).round_ties_even() as i64;
    #[expect(clippy::cast_precision_loss, reason = "below 10^12")]
    let back = thousandths as f64 / 1_000.0;
    // As bits: -0.0 has no integer.
    (back.to_bits() == value.to_bits()).then_some(thousandths)
}

fn write_thousandths(out: &mut Vec<u8>, thousandths: i64) {
    let magnitude = thousandths.unsigned_abs();
    let (mut whole, fraction) = (magnitude / 1_000, magnitude % 1_000);
    // Sign, nine digits, point, three digits.
    let mut text = [b'0'; 14];
    let mut start = 10;
    loop {
        start -= 1;
        text[start] = digit(whole % 10);
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    if thousandths < 0 {
        start -= 1;
        text[start] = b'-';
    }
    text[10] = b'.';
    text[11] = digit(fraction / 100);
    text[12] = digit(fraction / 10 % 10);
    text[13] = digit(fraction % 10);
    let end = match fraction {
        _ if !fraction.is_multiple_of(10) => 14,
        _ if !fraction.is_multiple_of(100) => 13,
        _ => 12,
    };
    out.extend_from_slice(&text[start..end]);
}

fn digit(value: u64) -> u8 {
    b'0' + value.to_le_bytes()[0]
}

/// Appends an integer.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    // Sign and nineteen digits.
    let mut text = [b'0'; 20];
    let (mut rest, mut start) = (value.unsigned_abs(), text.len());
    loop {
        start -= 1;
        text[start] = digit(rest % 10);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&text[start..]);
}

/// Appends an instant as a JSON string.
pub fn write_time(out: &mut Vec<u8>, time_ns: i64) {
    out.push(b'"');
    time::write_rfc3339(out, time_ns);
    out.push(b'"');
}

/// Appends `true` or `false`.
pub fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a JSON object of string values, in the order given.
pub fn write_object_of_strings<'t>(
    out: &mut Vec<u8>,
    pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
) {
    out.push(b'{');
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write_string(out, value);
    }
    out.push(b'}');
}

/// Does as [`write_object_of_strings`], of strings that are all plain ([`is_plain`]).
pub fn write_object_of_plain_strings<'t>(
    out: &mut Vec<u8>,
    pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
) {
    let mut before_key = b"{\"".as_slice();
    for (key, value) in pairs {
        out.extend_from_slice(before_key);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":\"");
        out.extend_from_slice(value.as_bytes());
        before_key = b"\",\"";
    }
    out.extend_from_slice(if before_key.len() == 2 { b"{}" } else { b"\"}" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        write_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn number(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_escape_what_json_must_escape_and_nothing_else() {
        assert_eq!(string("a\"b\\c\n\u{1}\u{7f}é"), "\"a\\\"b\\\\c\\n\\u0001\u{7f}é\"");
    }

    #[test]
    fn plain_strings_are_written_as_any_others() {
        let pairs = [("entity_id", "link-1"), ("é", "a b\u{7f}"), ("site", "")];
        for count in 0..=pairs.len() {
            let (mut plain, mut any) = (Vec::new(), Vec::new());
            write_object_of_plain_strings(&mut plain, pairs[..count].iter().copied());
            write_object_of_strings(&mut any, pairs[..count].iter().copied());
            assert_eq!(plain, any);
        }
        assert!(pairs.iter().all(|(key, value)| is_plain(key) && is_plain(value)));
        assert!(!["a\"", "\\", "\u{1f}"].iter().any(|text| is_plain(text)));
    }

    #[test]
    fn numbers_are_shortest_and_show_their_type() {
        assert_eq!(number(12.0), "12.0");
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(-0.0), "-0.0");
    }

    #[test]
    fn integers_have_no_point() {
        for value in [0, 7, -10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn decimals_are_written_as_any_other_double() {
        let zmij = |value: f64| zmij::Buffer::new().format_finite(value).to_owned();
        let mut bits = 1_u64;
        for at in 0..200_000_i32 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let wide = f64::from(u32::try_from(bits >> 32).unwrap());
            let decimals = 10_f64.powi(at % 6);
            for value in [wide / decimals, -wide / decimals, f64::from(at) / 1_000.0] {
                assert_eq!(number(value), zmij(value));
            }
        }
        for value in [999_999_999.999, 1e9, 999_999_999.999_9, 0.000_5, 5e-324, f64::MAX, -1e9] {
            assert_eq!(number(value), zmij(value));
            assert_eq!(number(-value), zmij(-value));
        }
    }
}
