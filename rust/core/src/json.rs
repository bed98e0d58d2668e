//! Writing JSON answers straight into one buffer.

use crate::time;

/// Appends `text` as a JSON string, quotes included (RFC 8259, section 7).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        write_escape(out, byte);
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
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

/// Appends a finite double as the shortest text that reads back as the same double (J13).
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    debug_assert!(value.is_finite(), "only finite values are stored");
    out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
}

/// Appends an instant as a JSON string (D7).
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
pub fn write_object_of_strings(out: &mut Vec<u8>, pairs: &[(String, String)]) {
    out.push(b'{');
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write_string(out, value);
    }
    out.push(b'}');
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
    fn numbers_are_shortest_and_show_their_type() {
        assert_eq!(number(12.0), "12.0");
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(-0.0), "-0.0");
    }
}
