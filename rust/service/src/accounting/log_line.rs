//! Lines of the access log.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetcast_core::model::json::write_string;
use fleetcast_front::calendar::civil;

const SECOND_BYTES: usize = 19;

thread_local! {
    /// The second that this thread formatted last, and its text.
    static SECOND: Cell<(u64, [u8; SECOND_BYTES])> =
        const { Cell::new((u64::MAX, [0; SECOND_BYTES])) };
}

/// The status of an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AnswerStatus<'t> {
    /// A status code of HTTP.
    Http(u16),
    /// A status name of gRPC.
    Grpc(&'t str),
}

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub struct ServedRequest<'t> {
    /// The id of the request.
    pub request_id: &'t str,
    /// The method, or the name of the surface.
    pub method: &'t str,
    /// The path, or the call.
    pub route: &'t str,
    /// The status of the answer.
    pub status: AnswerStatus<'t>,
    /// The error code of the answer, if the answer is an error.
    pub error: Option<&'t str>,
    /// The tenant, if the key is known.
    pub tenant: Option<&'t str>,
    /// The id of the key, if the key is known.
    pub key_id: Option<&'t str>,
    /// The address of the client.
    pub client: &'t str,
    /// Time from the head to the answer.
    pub duration: Duration,
    /// Bytes of the body of the request.
    pub bytes_in: u64,
    /// Bytes of the body of the answer.
    pub bytes_out: u64,
    /// The name of the process.
    pub process: &'t str,
}

impl ServedRequest<'_> {
    /// Returns the line of a request that ended at `now`, with its line break.
    #[must_use]
    pub fn line(&self, now: SystemTime) -> Vec<u8> {
        let mut line = Vec::with_capacity(512);
        line.extend_from_slice(br#"{"event":"request""#);
        put(&mut line, "request_id", Some(self.request_id));
        put(&mut line, "method", Some(self.method));
        put(&mut line, "route", Some(self.route));
        // Writing to memory cannot fail.
        match self.status {
            AnswerStatus::Http(status) => _ = write!(line, r#","status":{status}"#),
            AnswerStatus::Grpc(name) => put(&mut line, "status", Some(name)),
        }
        put(&mut line, "error", self.error);
        put(&mut line, "tenant", self.tenant);
        put(&mut line, "key_id", self.key_id);
        put(&mut line, "client", Some(self.client));
        let microseconds = (self.duration.as_nanos() + 500) / 1_000;
        let (milliseconds, rest) = (microseconds / 1_000, microseconds % 1_000);
        let _ = write!(line, r#","duration_ms":{milliseconds}.{rest:03}"#);
        let (bytes_in, bytes_out) = (self.bytes_in, self.bytes_out);
        let _ = write!(line, r#","bytes_in":{bytes_in},"bytes_out":{bytes_out}"#);
        line.extend_from_slice(br#","level":"info","logger":"fleetcast.access""#);
        put(&mut line, "process", Some(self.process));
        line.extend_from_slice(br#","timestamp":""#);
        write_timestamp(&mut line, now);
        line.extend_from_slice(b"\"}\n");
        line
    }
}

/// Appends a member of a line.
fn put(line: &mut Vec<u8>, name: &str, text: Option<&str>) {
    let _ = write!(line, r#","{name}":"#);
    match text {
        Some(text) => write_string(line, text),
        None => line.extend_from_slice(b"null"),
    }
}

/// Appends a time in the form that all log lines share.
pub(super) fn write_timestamp(line: &mut Vec<u8>, now: SystemTime) {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    line.extend_from_slice(&second(since.as_secs()));
    let _ = write!(line, ".{:06}Z", since.subsec_micros());
}

/// Writes a line to stderr by one system call, so that lines of several processes stay whole.
pub(super) fn write_line(line: &[u8]) {
    let _: io::Result<usize> = io::stderr().write(line); // there is no place to report the error
}

fn second(second: u64) -> [u8; SECOND_BYTES] {
    let (known, text) = SECOND.get();
    if known == second {
        return text;
    }
    let (days, of_day) = (second / 86_400, second % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, of_minute) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut text = [0; SECOND_BYTES];
    // The year has four digits for some thousands of years.
    let _ =
        write!(&mut text[..], "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{of_minute:02}");
    SECOND.set((second, text));
    text
}
