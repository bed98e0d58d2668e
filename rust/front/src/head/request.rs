//! A well-formed head.

use super::fields::{self, HeaderField};
use super::framing::{self, Framing};
use super::refusal::HeadFault;
use super::request_line::{self, RequestLine};
use super::span::ByteSpan;

const LINE_END: &[u8] = b"\r\n";

/// Returns the name by which a head stores a field. Example: `X_API_KEY` for `X-Api-Key`.
#[must_use]
pub fn field_name(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// Content of a well-formed head. It owns the bytes; all parts are ranges of these bytes.
#[derive(Debug)]
pub struct RequestHead {
    bytes: Vec<u8>,
    line: RequestLine,
    fields: Vec<HeaderField>,
    framing: Framing,
    expects_continue: bool,
}

impl RequestHead {
    /// Reads a whole head, from the first byte to the end that a [`super::HeadScanner`] found.
    ///
    /// # Errors
    /// Returns a [`HeadFault`] if the head is malformed.
    pub fn parse(mut bytes: Vec<u8>) -> Result<Self, HeadFault> {
        // One empty line before the request line is ignored (RFC 9112, 2.2).
        let start = if bytes.starts_with(LINE_END) { LINE_END.len() } else { 0 };
        let line_bytes = bytes[start..].windows(LINE_END.len()).position(|pair| pair == LINE_END);
        let line_end = start + line_bytes.ok_or(HeadFault::BadRequest)?;
        let line = request_line::read(&bytes, start, line_end)?;
        let read = fields::read(&mut bytes, line_end + LINE_END.len())?;
        let method = line.method.of_bytes(&bytes);
        let framing = framing::read(&bytes, &read.all, line.minor_version, method)?;
        let expects_continue = read.expects_continue && line.minor_version > 0;
        let fields =
            if read.is_repeated { fields::join_repeated(&mut bytes, &read.all) } else { read.all };
        Ok(Self { bytes, line, fields, framing, expects_continue })
    }

    /// The method as it was sent.
    #[must_use]
    pub fn method(&self) -> &str {
        self.text(self.line.method)
    }

    /// The path of the target, not decoded.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text(self.line.path)
    }

    /// The target's text after `?`; empty if the target has no query.
    #[must_use]
    pub fn query(&self) -> &str {
        self.text(self.line.query)
    }

    /// The `x` in HTTP/1.x.
    #[must_use]
    pub fn minor_version(&self) -> u8 {
        self.line.minor_version
    }

    /// The fields in the order in which their names came first. A name is WSGI's name without
    /// `HTTP_` (`X_API_KEY`). A value is in Latin-1; the values of a repeated name are joined by
    /// commas.
    #[must_use]
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|field| (self.text(field.name), field.value.of_bytes(&self.bytes)))
    }

    /// The value of the field with that name (`X_API_KEY`).
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|field| field.0 == name).map(|field| field.1)
    }

    /// The value of Content-Length: 0 if the field is missing, `u64::MAX` for every larger number.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.framing.body_bytes
    }

    /// Returns true if the body has a transfer coding, and therefore no known length.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.framing.is_chunked
    }

    /// Returns true if the client wants no further answer on this connection.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.framing.closes
    }

    /// Returns true if the client waits for `100 Continue` before it sends the body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    fn text(&self, span: ByteSpan) -> &str {
        // Tokens and targets are ASCII, or the head would have been refused.
        str::from_utf8(span.of_bytes(&self.bytes)).unwrap_or_default()
    }
}
