//! Fields that frame a message: length and codings of the body, and the end of the connection.

use super::fields::HeaderField;
use super::refusal::HeadFault;

/// Most digits that Python's `int` accepts, because the application parses the number again.
const CONTENT_LENGTH_DIGITS_MAX: usize = 4300;

/// Body and connection, as the fields describe them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Framing {
    pub(super) body_bytes: u64,
    pub(super) is_chunked: bool,
    pub(super) closes: bool,
}

/// Reads the fields that frame a message of HTTP/1.`minor_version` (RFC 9112, 6).
pub(super) fn read(
    head: &[u8],
    fields: &[HeaderField],
    minor_version: u8,
    method: &[u8],
) -> Result<Framing, HeadFault> {
    let mut length: Option<&[u8]> = None;
    let mut codings = Codings::default();
    let mut wish = ConnectionOptions::default();
    for field in fields {
        let value = field.value.of_bytes(head);
        match field.name.of_bytes(head) {
            b"CONTENT_LENGTH" if length.is_some() => return Err(HeadFault::InvalidContentLength),
            b"CONTENT_LENGTH" => length = Some(value),
            b"TRANSFER_ENCODING" => codings.add(value)?,
            b"CONNECTION" => wish.add(value),
            _ => {}
        }
    }
    codings.check(minor_version, length.is_some())?;
    Ok(Framing {
        body_bytes: length.map_or(Ok(0), content_length)?,
        is_chunked: codings.is_chunked,
        closes: codings.is_compressed || method == b"CONNECT" || wish.ends(minor_version),
    })
}

/// A client's wishes for its connection, from every member of every such field (RFC 9112, 9.3 and
/// 9.6).
#[derive(Default)]
struct ConnectionOptions {
    closes: bool,
    keeps: bool,
}

impl ConnectionOptions {
    fn add(&mut self, list: &[u8]) {
        for member in list.split(|byte| *byte == b',') {
            let member = member.trim_ascii();
            self.closes |= member.eq_ignore_ascii_case(b"close");
            self.keeps |= member.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn ends(&self, minor_version: u8) -> bool {
        self.closes || minor_version == 0 && !self.keeps
    }
}

/// Returns the number, or `u64::MAX` if the number needs more than 64 bits.
fn content_length(value: &[u8]) -> Result<u64, HeadFault> {
    let is_number = value.iter().all(u8::is_ascii_digit);
    if value.is_empty() || !is_number || value.len() > CONTENT_LENGTH_DIGITS_MAX {
        return Err(HeadFault::InvalidContentLength);
    }
    let next =
        |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Ok(value.iter().fold(0, next))
}

/// Transfer codings in the order in which they were applied.
#[derive(Default)]
struct Codings {
    is_given: bool,
    is_chunked: bool,
    is_compressed: bool,
}

impl Codings {
    fn add(&mut self, list: &[u8]) -> Result<(), HeadFault> {
        self.is_given = true;
        for coding in list.split(|byte| *byte == b',') {
            let coding = coding.trim_ascii();
            let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
            let is_compressed = is("compress") || is("deflate") || is("gzip");
            if !is_compressed && !is("chunked") && !is("identity") {
                return Err(HeadFault::UnsupportedTransferCoding);
            }
            if self.is_chunked {
                return Err(HeadFault::BadRequest); // chunked comes last, and once
            }
            self.is_chunked = is("chunked");
            self.is_compressed |= is_compressed;
        }
        Ok(())
    }

    fn check(&self, minor_version: u8, has_length: bool) -> Result<(), HeadFault> {
        if self.is_given && (!self.is_chunked || minor_version == 0) {
            return Err(HeadFault::BadRequest);
        }
        if self.is_chunked && has_length {
            return Err(HeadFault::InvalidContentLength);
        }
        Ok(())
    }
}
