//! Reasons for which a head gets no further than the parser.

/// Fault of a malformed head. After any of them nobody knows where the next request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request line is longer than its limit.
    UriTooLong,
    /// The head, a field or the count of fields is beyond its limit.
    HeadersTooLarge,
    /// The client expects something other than `100-continue`.
    ExpectationFailed,
    /// The body has a transfer coding that HTTP/1.1 does not name.
    UnsupportedTransferCoding,
    /// Content-Length is no number, is given twice, or contradicts Transfer-Encoding.
    InvalidContentLength,
    /// Anything else that is not as RFC 9112 wants it.
    BadRequest,
}

impl Refusal {
    /// The code that the answer carries.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::UriTooLong => "uri_too_long",
            Self::HeadersTooLarge => "headers_too_large",
            Self::ExpectationFailed => "expectation_failed",
            Self::UnsupportedTransferCoding => "unsupported_transfer_coding",
            Self::InvalidContentLength => "invalid_content_length",
            Self::BadRequest => "bad_request",
        }
    }
}
