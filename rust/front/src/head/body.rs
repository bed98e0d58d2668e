//! Bodies: their length, whether they are read, and whether the connection can go on after them.

use super::request::RequestHead;

/// Bounds on bodies in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// A longer body is never buffered.
    pub body_bytes_max: u64,
    /// A longer body is not skipped either, if the request does not need it.
    pub drain_bytes_max: u64,
    /// If true, a body in chunks is read too.
    pub takes_chunks: bool,
}

/// Treatment of the body behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the body by itself")]
pub struct BodyFraming {
    /// The value of Content-Length; 0 if the field is missing.
    pub body_bytes: u64,
    /// If true, the body is read before the request is served.
    pub is_buffered: bool,
    /// If true, the start of the next request on this connection is known.
    pub is_reusable: bool,
    /// If true, the body is longer than allowed and is not read.
    pub is_oversized: bool,
    /// If true, the body comes in chunks, which are put together.
    pub is_chunked: bool,
}

impl BodyFraming {
    /// Decides how the body after `head` is treated.
    #[must_use]
    pub fn of(head: &RequestHead, limits: BodyLimits) -> Self {
        let body_bytes = head.body_bytes();
        let writes = matches!(head.method(), "POST" | "PUT" | "PATCH");
        let is_oversized = writes && body_bytes > limits.body_bytes_max;
        let is_chunked = writes && head.is_chunked() && limits.takes_chunks;
        let is_buffered = is_chunked || writes && body_bytes > 0 && !is_oversized;
        let is_skippable = is_buffered || body_bytes <= limits.drain_bytes_max;
        let is_waiting = head.expects_continue() && !is_buffered;
        // After chunks that are not read, the start of the next request is unknown.
        let is_unknown =
            head.is_chunked() && !is_chunked || is_oversized || is_waiting || !is_skippable;
        let is_reusable = !is_unknown && !head.closes();
        Self { body_bytes, is_buffered, is_reusable, is_oversized, is_chunked }
    }
}
