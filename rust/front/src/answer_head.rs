//! Heads of answers.

use std::cell::Cell;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::calendar::civil;

const DATE_BYTES: usize = 29;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // the first of 1970 is in front
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

thread_local! {
    /// The second that this thread formatted last, and its date.
    static DATE: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [0; DATE_BYTES])) };
}

/// Refusal of a field or status that contains a line break.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineBreak;

/// How an answer's head says where its body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// The body has this many bytes.
    Bytes(usize),
    /// In chunks (RFC 9112, 7.1).
    Chunked,
    /// The head says no length. The body ends with the connection, or the answer has no body. A
    /// `Content-Length` among the fields tells the length that the body would have.
    Unsaid,
}

/// Composes the head of an answer with a body that ends as `length` says.
///
/// # Errors
/// Returns [`LineBreak`] if a status or a field contains a line break.
pub fn answer_head<'a>(
    status: &[u8],
    keep: bool,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    length: BodyLength,
) -> Result<Vec<u8>, LineBreak> {
    let mut head = Vec::with_capacity(512);
    let mut lines = 3;
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(status);
    head.extend_from_slice(b"\r\nDate: ");
    head.extend_from_slice(&date());
    let connection: &[u8] = if keep { b"keep-alive" } else { b"close" };
    head.extend_from_slice(b"\r\nConnection: ");
    head.extend_from_slice(connection);
    for (name, value) in fields {
        if length == BodyLength::Unsaid || !name.eq_ignore_ascii_case(b"content-length") {
            lines += 1;
            head.extend_from_slice(b"\r\n");
            head.extend_from_slice(name);
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
        }
    }
    lines += usize::from(length != BodyLength::Unsaid);
    match length {
        // Writing to memory cannot fail.
        BodyLength::Bytes(bytes) => _ = write!(head, "\r\nContent-Length: {bytes}"),
        BodyLength::Chunked => head.extend_from_slice(b"\r\nTransfer-Encoding: chunked"),
        BodyLength::Unsaid => {}
    }
    head.extend_from_slice(b"\r\n\r\n");
    if count_of_breaks(&head) == 2 * (lines + 1) { Ok(head) } else { Err(LineBreak) }
}

/// Counts the bytes that break lines. It counts in pieces whose count fits a byte, so that the
/// processor adds many bytes in one instruction.
fn count_of_breaks(text: &[u8]) -> usize {
    let of = |piece: &[u8]| {
        piece
            .iter()
            .fold(0_u8, |count, byte| count.wrapping_add(u8::from(matches!(byte, b'\r' | b'\n'))))
    };
    text.chunks(u8::MAX.into()).map(|piece| usize::from(of(piece))).sum()
}

/// The current time in the form of RFC 9110, 5.6.7. Example: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date() -> [u8; DATE_BYTES] {
    let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (known, text) = DATE.get();
    if known == second {
        return text;
    }
    let text = date_of(second);
    DATE.set((second, text));
    text
}

fn date_of(second: u64) -> [u8; DATE_BYTES] {
    let (days, of_day) = (second / 86_400, second % 86_400);
    let (year, month, day) = civil(days);
    let weekday = DAYS[(days % 7) as usize];
    let month = MONTHS[month - 1];
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut text = [0; DATE_BYTES];
    // The year has four digits for some thousands of years.
    let _ = write!(
        &mut text[..],
        "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The first date is from RFC 9110; the others are from `date -u -d @…`.
        for (second, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(str::from_utf8(&date_of(second)), Ok(text));
        }
    }

    #[test]
    fn a_body_has_one_length_and_no_field_breaks_the_head() {
        let fields = [(&b"content-length"[..], &b"9"[..]), (b"A", b"b")];
        let head = |length| match answer_head(b"200 OK", true, fields, length) {
            Ok(head) => String::from_utf8(head).unwrap(),
            Err(LineBreak) => panic!("there is none"),
        };
        let whole = head(BodyLength::Bytes(3));
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\nDate: "));
        assert!(whole.ends_with("\r\nConnection: keep-alive\r\nA: b\r\nContent-Length: 3\r\n\r\n"));
        assert!(
            head(BodyLength::Unsaid)
                .ends_with("\r\nConnection: keep-alive\r\ncontent-length: 9\r\nA: b\r\n\r\n")
        );
        assert!(
            head(BodyLength::Chunked).ends_with("\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n")
        );
        for (status, value) in [(&b"200 OK\n"[..], &b"b"[..]), (b"200 OK", b"b\r\nc: d")] {
            let head = answer_head(status, false, [(&b"A"[..], value)], BodyLength::Unsaid);
            assert_eq!(head, Err(LineBreak));
        }
    }
}
