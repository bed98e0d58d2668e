//! Lines of the access log.

use std::cell::Cell;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calendar::civil;

const SECOND_BYTES: usize = 19;

thread_local! {
    /// The last second that this thread wrote, as a timestamp has it.
    static SECOND: Cell<(u64, [u8; SECOND_BYTES])> =
        const { Cell::new((u64::MAX, [0; SECOND_BYTES])) };
}

/// A line whose texts are known but for what differs from request to request.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Texts before the id, the milliseconds, the bytes in, the bytes out and the timestamp, and the
    /// end of the line.
    pub texts: [Box<str>; 6],
}

impl LogLine {
    /// The line of one request that ended at `now`.
    #[must_use]
    pub fn of(
        &self,
        id: &[u8],
        duration: Duration,
        (bytes_in, bytes_out): (u64, usize),
        now: SystemTime,
    ) -> Vec<u8> {
        let [begin, milliseconds, input, output, timestamp, end] = &self.texts;
        let mut line = Vec::with_capacity(512);
        line.extend_from_slice(begin.as_bytes());
        line.extend_from_slice(id);
        // Writing to memory cannot fail.
        let microseconds = (duration.as_nanos() + 500) / 1_000;
        let _ = write!(line, "{milliseconds}{}.{:03}", microseconds / 1_000, microseconds % 1_000);
        let _ = write!(line, "{input}{bytes_in}{output}{bytes_out}{timestamp}");
        write_timestamp(&mut line, now);
        let _ = writeln!(line, "{end}");
        line
    }
}

/// Appends an instant as all log lines spell it.
pub fn write_timestamp(line: &mut Vec<u8>, now: SystemTime) {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    line.extend_from_slice(&second(since.as_secs()));
    let _ = write!(line, ".{:06}Z", since.subsec_micros());
}

/// Writes a line to stderr by one system call, so that lines of several processes stay whole.
pub fn write_line(line: &[u8]) {
    let _: io::Result<usize> = io::stderr().write(line); // nobody is left to be told
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
