//! Reasons for which the parser refuses a head.

/// Fault of a malformed head. After every fault the start of the next request is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadFault {
    /// The request line is longer than its limit.
    UriTooLong,
    /// The head, a field or the count of fields is beyond its limit.
    HeadersTooLarge,
    /// The client expects something other than `100-continue`.
    ExpectationFailed,
    /// The body has a transfer coding that HTTP/1.1 does not name.
    UnsupportedTransferCoding,
    /// Content-Length is not a number, is given twice, or contradicts Transfer-Encoding.
    InvalidContentLength,
    /// The head breaks RFC 9112 in another way.
    BadRequest,
}

impl HeadFault {
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
