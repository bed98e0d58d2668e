//! Texts without quotes, in which the byte after a backslash decides its meaning.

use std::borrow::Cow;

use crate::model::swar::equal_bytes;
use crate::wire::tokens::json::Scanner;

/// Meaning of two backslashes in a text without quotes. It differs between versions of `InfluxDB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backslashes {
    /// Versions 1 and 2: two backslashes stay two, and the second may escape a byte.
    /// Example: `C:\\ x` is `C:\ x`.
    Apart,
    /// Version 3: two backslashes are one, and the byte after them keeps its meaning.
    /// Example: `C:\\\ x` is `C:\ x`.
    Paired,
}

/// A kind of text: the bytes that end it, and the bytes that a backslash escapes. Before any other
/// byte a backslash stands for itself.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    ends: &'static [u8],
    escaped: &'static [u8],
}

/// The name of a measurement.
pub(crate) const MEASUREMENT: Text = Text { ends: b", ", escaped: b", " };
/// The key of a tag or of a field. If a comma or a space ends it, it has no value.
pub(crate) const NAME: Text = Text { ends: b"=, ", escaped: b",= " };
/// The value of a tag.
const TAG_VALUE: Text = Text { ends: b", ", escaped: b",= " };

impl Text {
    /// Reads the text that begins here, which may be empty.
    pub(crate) fn read<'a>(self, scan: &mut Scanner<'a>, backslashes: Backslashes) -> Cow<'a, str> {
        let (bytes, start) = (scan.bytes(), scan.at);
        let mut has_escapes = false;
        while !is_end(bytes, scan.at) {
            match bytes.get(scan.at) {
                Some(byte) if self.ends.contains(byte) => break,
                Some(b'\\') => {
                    has_escapes = true;
                    scan.at += escape_length(bytes, scan.at, backslashes);
                }
                _ => scan.at += 1,
            }
        }
        // Both offsets are at ASCII bytes or at the end.
        let raw = scan.text.get(start..scan.at).unwrap_or_default();
        if has_escapes { self.unescaped(raw, backslashes).into() } else { raw.into() }
    }

    fn unescaped(self, raw: &str, backslashes: Backslashes) -> String {
        let is_escaped = |byte: &u8| match byte {
            b'\\' => backslashes == Backslashes::Paired,
            byte => self.escaped.contains(byte),
        };
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            match after.as_bytes().first() {
                Some(byte) if is_escaped(byte) => {
                    out.push(char::from(*byte));
                    rest = after.get(1..).unwrap_or_default();
                }
                _ => {
                    out.push('\\');
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// Reads the key and the value of the tag that begins here. Returns `None` if it is not a tag.
pub(crate) fn tag<'a>(
    scan: &mut Scanner<'a>,
    backslashes: Backslashes,
) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let key = NAME.read(scan, backslashes);
    scan.take(b'=').then(|| (key, TAG_VALUE.read(scan, backslashes)))
}

/// Returns the length of the backslash at `at` and of the byte whose meaning it may change. The
/// byte may begin a longer character, whose other bytes have no meaning alone.
fn escape_length(bytes: &[u8], at: usize, backslashes: Backslashes) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') if backslashes == Backslashes::Apart => 1,
        Some(byte) if byte.is_ascii() && !is_end(bytes, at + 1) => 2,
        _ => 1,
    }
}

/// Returns true if a line ends at this offset: before a line feed, before a carriage return and a
/// line feed, or at the end of the body.
#[inline]
pub(crate) fn is_end(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => matches!(bytes.get(at + 1), None | Some(b'\n')),
        Some(_) => false,
    }
}

/// Returns the length of the rest of a line, without its line feed.
pub(crate) fn line_length(rest: &[u8]) -> usize {
    let (chunks, tail) = rest.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let found = equal_bytes(u64::from_le_bytes(*chunk), b'\n');
        if found != 0 {
            return at * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let in_tail = tail.iter().position(|byte| *byte == b'\n').unwrap_or(tail.len());
    rest.len() - tail.len() + in_tail
}

/// Returns the number of line feeds in `text`.
pub(crate) fn line_ends(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count() - 1
}

#[inline]
pub(crate) fn skip_spaces(scan: &mut Scanner<'_>) {
    while scan.peek() == b' ' {
        scan.at += 1;
    }
}

/// Returns the length of the tags at the start of `rest`, including the space that ends them.
/// Returns `None` if the line ends first. With this space no tags are the beginning of other tags.
#[inline]
pub(crate) fn tags_length(rest: &[u8], backslashes: Backslashes) -> Option<usize> {
    for (at, chunk) in rest.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let others = equal_bytes(word, b'\\') | equal_bytes(word, b'\n');
        let found = equal_bytes(word, b' ');
        if others != 0 {
            break;
        }
        if found != 0 {
            return Some(at * 8 + (found.trailing_zeros() / 8) as usize + 1);
        }
    }
    any_tags_length(rest, backslashes)
}

fn any_tags_length(rest: &[u8], backslashes: Backslashes) -> Option<usize> {
    let mut at = 0;
    while !is_end(rest, at) {
        match rest.get(at)? {
            b' ' => return Some(at + 1),
            b'\\' => at += escape_length(rest, at, backslashes),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Backslashes::{Apart, Paired};
    use super::*;

    /// Returns the text at the start of `line`, and the rest.
    fn read(kind: Text, line: &str, backslashes: Backslashes) -> (String, &str) {
        let mut scan = Scanner::new(line, 0);
        let text = kind.read(&mut scan, backslashes).into_owned();
        (text, &line[scan.at..])
    }

    #[test]
    fn backslashes_as_published() {
        let cases = [
            (MEASUREMENT, r"a\ b\,c\=d\\e\f g", r"a b,c\=d\e\f", " g"),
            (NAME, r"a\ b\,c\=d\\e\f=g", r"a b,c=d\e\f", "=g"),
            (TAG_VALUE, r"a\ b\,c\=d\\e\f=g,h", r"a b,c=d\e\f=g", ",h"),
            (TAG_VALUE, r"a\\ b", r"a\", " b"),
            (TAG_VALUE, r"a\\\ b c", r"a\ b", " c"),
            (TAG_VALUE, "\\é\\", "\\é\\", ""),
            (TAG_VALUE, "a\\\r\nb", "a\\", "\r\nb"),
            (TAG_VALUE, "a\rb\n", "a\rb", "\n"),
            (NAME, "", "", ""),
        ];
        for (kind, line, text, rest) in cases {
            assert_eq!(read(kind, line, Paired), (text.to_owned(), rest), "{line}");
        }
    }

    #[test]
    fn backslashes_stand_for_themselves_in_versions_1_and_2() {
        let cases = [
            (TAG_VALUE, r"\\server\share x", r"\\server\share", " x"),
            (TAG_VALUE, r"C:\\ temp,b=c", r"C:\ temp", ",b=c"),
            (TAG_VALUE, r"a\\\,b c", r"a\\,b", " c"),
            (NAME, r"a\\=b=c", r"a\=b", "=c"),
            (MEASUREMENT, r"a\\ b\=,c", r"a\ b\=", ",c"),
            (TAG_VALUE, "a\\\\\r\nb", "a\\\\", "\r\nb"),
            (TAG_VALUE, "\\é\\", "\\é\\", ""),
        ];
        for (kind, line, text, rest) in cases {
            assert_eq!(read(kind, line, Apart), (text.to_owned(), rest), "{line}");
        }
    }

    #[test]
    fn tags_end_with_the_first_space_that_is_none_of_theirs() {
        for tags in
            [" ", ",a=b ", r",a=b\ c\\ ", r",entity_id=link-1,site=x\,y ", ",é=日本語日本語 "]
        {
            for rest in ["", "f=1", " f=1\n", r"\ "] {
                let line = format!("{tags}{rest}");
                assert_eq!(tags_length(line.as_bytes(), Paired), Some(tags.len()), "{line}");
            }
        }
        assert_eq!(tags_length(br",a=b\\ c x=1", Apart), Some(r",a=b\\ c ".len()));
        for line in ["", ",a=b", ",a=b\n f=1", ",a=b\r\n f=1", r",a=b\ c", ",entity_id=link-1\n "] {
            assert_eq!(tags_length(line.as_bytes(), Paired), None, "{line}");
        }
    }
}
