//! Values of fields, and times.

use std::borrow::Cow;

use super::text::is_end;
use crate::model::swar::{digit_count, eight_digits, few_digits, word};
use crate::wire::tokens::json::Scanner;

/// Digits that always fit a `u64`.
const DIGITS_MAX: usize = 19;

/// Why a text is not an integer of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerFault {
    /// Not an integer.
    Syntax,
    /// An integer that needs more than 64 bits with a sign.
    Size,
}

/// An integer and the number of its characters.
pub(crate) type ParsedInteger = (i64, usize);

/// Reads the integer at the start of `rest`. Example: `-17i` gives -17 and 3.
#[inline]
pub(crate) fn integer(rest: &[u8]) -> Result<ParsedInteger, IntegerFault> {
    let negative = rest.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut at = start;
    let mut magnitude = 0_u64;
    loop {
        let word = word(rest.get(at..).unwrap_or_default());
        let count = digit_count(word);
        if count < 8 {
            magnitude = magnitude
                .wrapping_mul(10_u64.wrapping_pow(u32::try_from(count).unwrap_or_default()))
                .wrapping_add(few_digits(word, count));
            at += count;
            break;
        }
        magnitude = magnitude.wrapping_mul(100_000_000).wrapping_add(eight_digits(word));
        at += 8;
    }
    let digits = rest.get(start..at).unwrap_or_default();
    let value = match digits.len() {
        0 => return Err(IntegerFault::Syntax),
        1..=DIGITS_MAX => 0_i64.checked_add_unsigned(magnitude).filter(|_| !negative),
        _ => None,
    };
    match value {
        Some(value) => Ok((value, at)),
        None => signed(rest, at),
    }
}

/// Reads the integer in the first `length` bytes, which is negative or has many digits.
fn signed(rest: &[u8], length: usize) -> Result<ParsedInteger, IntegerFault> {
    let text = rest.get(..length).and_then(|text| std::str::from_utf8(text).ok());
    let value = text.and_then(|text| text.parse().ok()).ok_or(IntegerFault::Size)?;
    Ok((value, length))
}

/// Reads the quoted string that begins here. Only a quote and a backslash are escaped. Returns
/// `None` if the string does not end. It may contain line feeds.
pub(crate) fn string<'a>(scan: &mut Scanner<'a>) -> Option<Cow<'a, str>> {
    let start = scan.at + 1;
    let bytes = scan.bytes();
    let mut at = start;
    let mut has_escapes = false;
    loop {
        match bytes.get(at)? {
            b'"' => break,
            b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\\')) => {
                has_escapes = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    scan.at = at + 1;
    let raw = scan.text.get(start..at)?;
    Some(if has_escapes { unescaped(raw).into() } else { raw.into() })
}

fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = characters.next_if(|next| character == '\\' && matches!(next, '"' | '\\'));
        out.push(escaped.unwrap_or(character));
    }
    out
}

/// Reads the value without quotes that begins here, which may be empty.
pub(crate) fn unquoted<'a>(scan: &mut Scanner<'a>) -> &'a str {
    let start = scan.at;
    while !is_unquoted_end(scan.bytes(), scan.at) {
        scan.at += 1;
    }
    scan.text.get(start..scan.at).unwrap_or_default()
}

/// Returns the boolean in `text`, if it is a boolean.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Returns true if a value without quotes ends at this offset.
#[inline]
pub(crate) fn is_unquoted_end(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at), Some(b',' | b' ')) || is_end(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_64_bits() {
        let edges = [0, 1, -1, 7, 12_345_678, 123_456_789, i64::MAX, i64::MIN, i64::MAX - 9];
        for value in edges {
            let text = value.to_string();
            for after in ["", "i", " ", "\n", ",b=1i,c=2i", "."] {
                let rest = format!("{text}{after}");
                assert_eq!(integer(rest.as_bytes()), Ok((value, text.len())), "{rest}");
            }
        }
        assert_eq!(integer(b"0000000000000000000000007i"), Ok((7, 25)));
        assert_eq!(integer(b"-0"), Ok((0, 2)));
        for text in ["", "-", "+1", "i", "x1"] {
            assert_eq!(integer(text.as_bytes()), Err(IntegerFault::Syntax), "{text}");
        }
        for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999999"] {
            assert_eq!(integer(text.as_bytes()), Err(IntegerFault::Size), "{text}");
        }
    }

    #[test]
    fn strings_end_with_a_quote_that_is_not_escaped() {
        let read = |line| {
            let mut scan = Scanner::new(line, 0);
            string(&mut scan).map(|text| (text.into_owned(), &line[scan.at..]))
        };
        let cases = [
            (r#""a" 1"#, "a", " 1"),
            (r#""","#, "", ","),
            (r#""a\"b\\" 1"#, "a\"b\\", " 1"),
            (r#""a\n\ \,\=""#, r"a\n\ \,\=", ""),
            ("\"a\r\n, =\" 1", "a\r\n, =", " 1"),
        ];
        for (line, text, rest) in cases {
            assert_eq!(read(line), Some((text.to_owned(), rest)), "{line}");
        }
        for line in ["\"", "\"a", r#""a\""#, r#""\"#] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
