//! Limits that one worker process sets its clients.

use std::time::Duration;

/// Bounds on connections and on waiting work in a process. `http/server/limits.py` describes each
/// bound and has the defaults.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "described where the defaults are, once")]
pub struct ConnectionLimits {
    pub body_bytes_max: u64,
    pub head_bytes_max: usize,
    pub read_deadline: Duration,
    pub request_deadline: Duration,
    pub idle: Duration,
    pub unread_body: Duration,
    pub drain: Duration,
    pub drain_bytes_max: u64,
    pub answer: Duration,
    pub answer_bytes_per_second_min: u64,
    pub stop_idle: Duration,
    pub stop_request: Duration,
    pub connections_max: u64,
    pub body_bytes_under_way_max: u64,
    pub unsent_bytes_max: u64,
    pub unsent_bytes_per_tenant_max: u64,
    pub unsent_wait: Duration,
    pub takes_chunks: bool,
}
