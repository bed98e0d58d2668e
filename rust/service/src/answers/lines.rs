//! Parameters of a body of lines, for the three write paths of `InfluxDB`.

use fleetcast_core::model::fault::BatchRefusal;
use fleetcast_core::wire::{Backslashes, Precision, Protocol};

use super::parameters::Parameters;

/// Returns the language of a body for version 1, 2 or 3, by the parameters of its request. Also
/// returns true if sound lines are to be stored even if other lines are faulty.
///
/// # Errors
/// Returns `invalid_input` for a precision that the version does not know, and for an
/// `accept_partial` other than `true` and `false`.
pub(crate) fn lines_parameters(version: u8, query: &str) -> Result<(Protocol, bool), BatchRefusal> {
    let mut given = Parameters::of(query);
    let precision = given.last("precision");
    let protocol = str::from_utf8(&precision).ok().and_then(|unit| lines_protocol(version, unit));
    let protocol = protocol.ok_or(BatchRefusal::InvalidInput { field: "precision" })?;
    match &*given.last("accept_partial") {
        b"" | b"true" => Ok((protocol, true)),
        b"false" => Ok((protocol, false)),
        _ => Err(BatchRefusal::InvalidInput { field: "accept_partial" }),
    }
}

/// Returns the language with times in `precision`, which may be empty. Returns `None` if the
/// version does not know the precision.
fn lines_protocol(version: u8, precision: &str) -> Option<Protocol> {
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
