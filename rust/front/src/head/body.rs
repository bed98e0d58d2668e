//! Bodies: how long one is, whether it is read, and whether the connection can go on after it.

use super::request::RequestHead;

/// Bounds on bodies in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// A longer body is never buffered.
    pub body_bytes_max: u64,
    /// A longer one that nobody reads is not skipped either.
    pub drain_bytes_max: u64,
    /// A body in chunks is read as well.
    pub takes_chunks: bool,
}

/// Treatment of the body behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the body by itself")]
pub struct BodyFraming {
    /// The value of Content-Length; 0 without one.
    pub body_bytes: u64,
    /// The body is to be read before the request is served.
    pub is_buffered: bool,
    /// The start of the next request on this connection is known.
    pub is_reusable: bool,
    /// The body is longer than allowed, so nobody reads it.
    pub is_oversized: bool,
    /// The body comes in chunks, which are put together.
    pub is_chunked: bool,
}

impl BodyFraming {
    /// The treatment of the body behind `head`.
    #[must_use]
    pub fn of(head: &RequestHead, limits: BodyLimits) -> Self {
        let body_bytes = head.body_bytes();
        let writes = matches!(head.method(), "POST" | "PUT" | "PATCH");
        let is_oversized = writes && body_bytes > limits.body_bytes_max;
        let is_chunked = writes && head.is_chunked() && limits.takes_chunks;
        let is_buffered = is_chunked || writes && body_bytes > 0 && !is_oversized;
        let is_skippable = is_buffered || body_bytes <= limits.drain_bytes_max;
        let is_waiting = head.expects_continue() && !is_buffered;
        // Behind chunks that are not read nobody knows where the next request would start.
        let is_unknown =
            head.is_chunked() && !is_chunked || is_oversized || is_waiting || !is_skippable;
        let is_reusable = !is_unknown && !head.closes();
        Self { body_bytes, is_buffered, is_reusable, is_oversized, is_chunked }
    }
}
