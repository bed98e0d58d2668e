//! Requests that were made before: read from a file, and moved on in time where that is wanted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const PREFIX: &[u8] = b"\"time\":\"";
/// `YYYY-MM-DDTHH:MM:S`: all but the last digit of the seconds, since steps are of ten.
const STAMP_BYTES: usize = 18;
const DAY_SECONDS: i64 = 86_400;

/// Requests of one file, sent in turn, over and over. Clones share them as long as times stay.
#[derive(Clone)]
pub(crate) struct Recorded {
    requests: Rc<Vec<Vec<u8>>>,
    /// Offsets of the stamps in each request; none where times stay.
    stamps: Rc<Vec<Vec<usize>>>,
    current: usize,
    next: usize,
    seconds: i64,
    step_seconds: i64,
}

impl Recorded {
    /// Reads requests, each behind its length (u32, little endian). With `step_seconds`, a multiple
    /// of ten, the times of JSON rows that begin as the first one does are that much later with
    /// each pass through the file.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or is not of this form.
    pub(crate) fn read(path: &Path, step_seconds: i64) -> io::Result<Self> {
        let content = fs::read(path)?;
        let mut rest = content.as_slice();
        let mut requests = Vec::new();
        while let Some((head, behind)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*head) as usize;
            let (request, behind) =
                behind.split_at_checked(length).ok_or_else(|| invalid("a request is cut short"))?;
            requests.push(request.to_vec());
            rest = behind;
        }
        if requests.is_empty() || !rest.is_empty() {
            return Err(invalid("no requests, each behind its length"));
        }
        let requests = Rc::new(requests);
        let stamps = Rc::default();
        let mut recorded = Self { requests, stamps, current: 0, next: 0, seconds: 0, step_seconds };
        if step_seconds != 0 {
            recorded.find_stamps()?;
        }
        Ok(recorded)
    }

    /// Files of a directory, in the order of their names; each is one sender's.
    ///
    /// # Errors
    ///
    /// Where the directory cannot be read.
    pub(crate) fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(directory)?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    /// Begins some requests later, so that senders of one file do not go in step.
    pub(crate) fn skip(&mut self, requests: usize) {
        self.next = (self.next + requests) % self.requests.len();
    }

    /// Goes on to the next request, which is then the current one.
    pub(crate) fn turn(&mut self) {
        self.current = self.next;
        self.next = (self.current + 1) % self.requests.len();
        if self.step_seconds != 0 {
            let stamp = stamp(self.seconds);
            let request = &mut Rc::make_mut(&mut self.requests)[self.current];
            for &offset in &self.stamps[self.current] {
                request[offset..offset + STAMP_BYTES].copy_from_slice(&stamp);
            }
            if self.next == 0 {
                self.seconds += self.step_seconds;
            }
        }
    }

    /// The current request.
    pub(crate) fn current(&self) -> &[u8] {
        &self.requests[self.current]
    }

    fn find_stamps(&mut self) -> io::Result<()> {
        let first = find(&self.requests[0], PREFIX)
            .and_then(|at| self.requests[0].get(at + PREFIX.len()..at + PREFIX.len() + STAMP_BYTES))
            .ok_or_else(|| invalid("no times in the first request"))?
            .to_vec();
        self.seconds = seconds(&first).ok_or_else(|| invalid("its first time has another form"))?;
        let pattern = [PREFIX, &first].concat();
        let mut stamps = Vec::new();
        for request in self.requests.iter() {
            let mut offsets = Vec::new();
            let mut from = 0;
            while let Some(at) = find(&request[from..], &pattern) {
                offsets.push(from + at + PREFIX.len());
                from += at + pattern.len();
            }
            stamps.push(offsets);
        }
        self.stamps = Rc::new(stamps);
        Ok(())
    }
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:S`, whose last digit is a zero.
fn seconds(stamp: &[u8]) -> Option<i64> {
    let text = str::from_utf8(stamp).ok()?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let of_day = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 18)? * 10;
    Some(days(year, month, day) * DAY_SECONDS + of_day)
}

fn stamp(seconds: i64) -> [u8; STAMP_BYTES] {
    let (day, of_day) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, date) = civil(day);
    let (hour, minute, tens) = (of_day / 3_600, of_day / 60 % 60, of_day % 60 / 10);
    let text = format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{tens}");
    let mut stamp = [b'0'; STAMP_BYTES];
    stamp.copy_from_slice(&text.as_bytes()[..STAMP_BYTES]);
    stamp
}

/// Days since 1970 of a date, after Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::{STAMP_BYTES, seconds, stamp};

    #[test]
    fn stamps_go_on_over_the_ends_of_days_and_years() {
        for (text, later) in [
            ("2026-12-31T23:59:5", "2027-01-01T00:00:0"),
            ("2028-02-28T23:59:5", "2028-02-29T00:00:0"),
            ("2026-03-01T00:00:0", "2026-03-01T00:00:1"),
        ] {
            let at = seconds(text.as_bytes()).unwrap();
            assert_eq!(stamp(at), text.as_bytes()[..STAMP_BYTES]);
            assert_eq!(stamp(at + 10), later.as_bytes()[..STAMP_BYTES]);
        }
    }
}
