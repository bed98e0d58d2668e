//! The language of a body of lines, as the three write paths of `InfluxDB` have it.

use fleetcast_core::wire::{Backslashes, Precision, Protocol};

/// The language of version 1, 2 or 3 with times in `precision`, which may be empty; `None` for one
/// that the version does not know.
#[must_use]
pub fn lines_protocol(version: u8, precision: &str) -> Option<Protocol> {
    let precision = match (version, precision) {
        (1, "" | "n" | "ns") | (2, "" | "ns") | (3, "ns" | "nanosecond") => "ns",
        (1, "u" | "µ" | "us") | (2, "us") | (3, "us" | "microsecond") => "us",
        (1 | 2, "ms") | (3, "ms" | "millisecond") => "ms",
        (1 | 2, "s") | (3, "s" | "second") => "s",
        (1, "m") => return Some(Protocol::Lines(Precision::Minutes, Backslashes::Apart)),
        (1, "h") => return Some(Protocol::Lines(Precision::Hours, Backslashes::Apart)),
        (3, "" | "auto") => return Some(Protocol::Lines(Precision::Auto, Backslashes::Paired)),
        _ => return None,
    };
    let backslashes = if version == 3 { Backslashes::Paired } else { Backslashes::Apart };
    Some(Protocol::Lines(Precision::parse(precision)?, backslashes))
}

/// The language of a body for `path`, by the parameters of a request; `None` for a path without
/// lines, and for parameters that are not plainly written.
pub(super) fn of_request(path: &str, query: &str) -> Option<Protocol> {
    let version = match path {
        "/write" => 1,
        "/api/v2/write" => 2,
        "/api/v3/write_lp" => 3,
        _ => return None,
    };
    let is_plain = |byte: u8| byte.is_ascii() && !matches!(byte, b'%' | b'+');
    if !query.bytes().all(is_plain) {
        return None;
    }
    let mut found = None;
    for pair in query.split('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("precision", unit) if found.is_none() => found = Some(unit),
            ("precision" | "accept_partial", _) => return None,
            _ => {}
        }
    }
    lines_protocol(version, found.unwrap_or_default())
}
