//! Writes JSON answers directly into a buffer.

use crate::model::time;

/// Appends the first `length` bytes of `text`. Copying a fixed size takes a few instructions, but
/// copying a variable size takes a call.
#[inline]
pub(crate) fn append<const N: usize>(out: &mut Vec<u8>, text: &[u8; N], length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(text);
    out.truncate(end);
}

/// Appends `text` as a JSON string, with quotes (RFC 8259, section 7).
///
/// Example: the text `say "hi"` becomes `"say \"hi\""`.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // Looks at all bytes without a branch, so that the compiler can process many bytes at a time.
    if bytes.iter().fold(false, |found, byte| found | is_special(*byte)) {
        write_escaped(out, bytes);
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

/// Does the same as [`write_string`] for the bytes of a plain text ([`is_plain`]).
pub fn write_plain_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Returns true if a JSON string can hold `text` without escapes.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.bytes().fold(false, |found, byte| found | is_special(byte))
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

/// Doubles below this may be written as thousandths. They have fewer than 15 digits, and such
/// decimals are unique.
const THOUSANDTHS_END: f64 = 1e9;

/// 1.5 times 2^52. Adding it to a double below 2^51 rounds the double to an integer, ties to even.
/// The integer is then in the lowest bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The three digits of each number below 1,000, and the number of digits without trailing zeros, at
/// least 1.
const DIGITS: [[u8; 4]; 1_000] = {
    let mut all = [[0; 4]; 1_000];
    let mut number = [b'0'; 3];
    let mut at = 0;
    while at < all.len() {
        let [hundreds, tens, ones] = number;
        let kept = if ones != b'0' {
            3
        } else if tens != b'0' {
            2
        } else {
            1
        };
        all[at] = [hundreds, tens, ones, kept];
        number = match number {
            [_, b'9', b'9'] => [hundreds + 1, b'0', b'0'],
            [_, _, b'9'] => [hundreds, tens + 1, b'0'],
            _ => [hundreds, tens, ones + 1],
        };
        at += 1;
    }
    all
};

/// Appends a finite double as the shortest text that reads back as the same double.
///
/// Example: 0.1 becomes `0.1`, and 20.0 becomes `20.0`.
#[inline]
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    debug_assert!(value.is_finite(), "only finite values are stored");
    if let Some(thousandths) = thousandths_of(value) {
        write_thousandths(out, thousandths);
    } else {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    }
}

/// Returns `value` in thousandths if that is an integer. Most telemetry has few decimals.
///
/// Dividing the integer by 1000 rounds once, so its text reads back as `value`. No other text with
/// so few digits reads back as `value`, so the text is the shortest.
///
/// Example: 21.25 is 21,250 thousandths.
#[inline]
fn thousandths_of(value: f64) -> Option<i64> {
    let rounded = value * 1_000.0 + ROUNDER;
    // Comparing the bits excludes -0.0, which no integer represents.
    let is_exact = ((rounded - ROUNDER) / 1_000.0).to_bits() == value.to_bits();
    let thousandths = rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    (is_exact && value.abs() < THOUSANDTHS_END).then_some(thousandths)
}

#[inline]
fn write_thousandths(out: &mut Vec<u8>, thousandths: i64) {
    let magnitude = thousandths.unsigned_abs();
    let (whole, [tenths, hundredths, rest, kept]) = (magnitude / 1_000, digits(magnitude));
    let sign = u64::from(b'-') * u64::from(thousandths < 0);
    let sign_bytes = u32::from(thousandths < 0);
    let fraction = u64::from(u32::from_le_bytes([b'.', tenths, hundredths, rest]));
    let fraction_bytes = 1 + u32::from(kept);
    if whole < 1_000 {
        let (text, bytes) = number(whole);
        let text = sign | (text | fraction << (8 * bytes)) << (8 * sign_bytes);
        append(out, &text.to_le_bytes(), (sign_bytes + bytes + fraction_bytes) as usize);
    } else {
        write_large(out, whole, thousandths < 0);
        append(out, &fraction.to_le_bytes(), fraction_bytes as usize);
    }
}

/// Returns the digits of `number` modulo 1,000 from [`DIGITS`].
#[inline]
fn digits(number: u64) -> [u8; 4] {
    DIGITS[(number % 1_000) as usize]
}

/// Returns a number below 1,000 as text, with the first character in the lowest byte, and its
/// length.
#[inline]
fn number(number: u64) -> (u64, u32) {
    let [hundreds, tens, ones, _] = digits(number);
    let zeros = u32::from(number < 100) + u32::from(number < 10);
    let text = u64::from(u32::from_le_bytes([hundreds, tens, ones, 0]));
    (text >> (8 * zeros), 3 - zeros)
}

/// Appends a number from 1,000 to 10^9.
fn write_large(out: &mut Vec<u8>, whole: u64, is_negative: bool) {
    if is_negative {
        out.push(b'-');
    }
    let millions = whole / 1_000_000;
    let (text, bytes) = number(if millions > 0 { millions } else { whole / 1_000 });
    append(out, &text.to_le_bytes(), bytes as usize);
    if millions > 0 {
        append(out, &digits(whole / 1_000), 3);
    }
    append(out, &digits(whole), 3);
}

fn digit(value: u64) -> u8 {
    b'0' + value.to_le_bytes()[0]
}

/// Appends an integer.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    // Twenty bytes hold a sign and nineteen digits.
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

/// Appends an instant, in nanoseconds since 1970, as a JSON string.
pub fn write_time(out: &mut Vec<u8>, time_ns: i64) {
    out.push(b'"');
    time::write_rfc3339(out, time_ns);
    out.push(b'"');
}

/// Appends `true` or `false`.
pub fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a JSON object of strings, in the given order.
///
/// Example: `("b", "2")` and `("a", "1")` become `{"b":"2","a":"1"}`.
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

/// Does the same as [`write_object_of_strings`] for strings that are all plain ([`is_plain`]).
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
