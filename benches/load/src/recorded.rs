//! Requests that were made before: read from a file, and moved on in time where that is wanted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// `YYYY-MM-DDTHH:MM:S`: all but the last digit of the seconds, since steps are of ten.
const TEXT_BYTES: usize = 18;
/// Seconds since 1970 as a varint of protobuf, from 1978 to 3058.
const VARINT_BYTES: usize = 5;
const DAY_SECONDS: i64 = 86_400;

/// Form of the times in requests.
#[derive(Clone, Copy)]
pub(crate) enum Times {
    /// RFC 3339 in UTC.
    Text,
    /// The seconds of a `google.protobuf.Timestamp`.
    Varint,
}

#[derive(Clone)]
struct Request {
    content: Vec<u8>,
    /// Offsets of its times.
    times: Vec<usize>,
}

/// Requests of one file, sent in turn, over and over. Clones share them as long as times stay.
#[derive(Clone)]
pub(crate) struct Recorded {
    requests: Rc<Vec<Request>>,
    current: usize,
    next: usize,
    times: Times,
    /// Time by which all rows are later with each pass through the file.
    step_seconds: i64,
    /// The first pass sends what was recorded.
    is_first_pass: bool,
}

impl Recorded {
    /// Reads requests. Before each stand its length, the count of its times, and the offset of each
    /// of these (u32, little endian). Steps of times in texts are of ten seconds.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is not of this form.
    pub(crate) fn read(path: &Path, times: Times, step_seconds: i64) -> io::Result<Self> {
        let content = fs::read(path)?;
        let mut rest = content.as_slice();
        let mut requests = Vec::new();
        while !rest.is_empty() {
            requests.push(Request::read(&mut rest, times).ok_or(io::ErrorKind::InvalidData)?);
        }
        if requests.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let requests = Rc::new(requests);
        Ok(Self { requests, current: 0, next: 0, times, step_seconds, is_first_pass: true })
    }

    /// Files of a directory, in the order of their names; each is one sender's.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read.
    pub(crate) fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(directory)?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    /// Tells whether times go on.
    pub(crate) fn goes_on(&self) -> bool {
        self.step_seconds != 0
    }

    /// Begins some requests later, so that senders of one file do not go in step.
    pub(crate) fn skip(&mut self, requests: usize) {
        self.next = (self.next + requests) % self.requests.len();
    }

    /// Goes on to the next request, which is then the current one.
    pub(crate) fn turn(&mut self) {
        self.current = self.next;
        if self.step_seconds != 0 && !self.is_first_pass {
            let request = &mut Rc::make_mut(&mut self.requests)[self.current];
            request.move_on(self.times, self.step_seconds);
        }
        self.next = (self.current + 1) % self.requests.len();
        self.is_first_pass &= self.next != 0;
    }

    /// The current request.
    pub(crate) fn current(&self) -> &[u8] {
        &self.requests[self.current].content
    }
}

impl Request {
    /// Takes one; `None` where there is none, or a time is not of its form.
    fn read(from: &mut &[u8], times: Times) -> Option<Self> {
        let length = word(from)?;
        let count = word(from)?;
        let offsets = (0..count).map(|_| word(from)).collect::<Option<Vec<_>>>()?;
        let (content, rest) = from.split_at_checked(length)?;
        *from = rest;
        for &offset in &offsets {
            match times {
                Times::Text => seconds(content.get(offset..offset + TEXT_BYTES)?).map(drop)?,
                Times::Varint => varint(content.get(offset..offset + VARINT_BYTES)?).map(drop)?,
            }
        }
        Some(Self { content: content.to_vec(), times: offsets })
    }

    fn move_on(&mut self, times: Times, step_seconds: i64) {
        for &offset in &self.times {
            match times {
                Times::Text => {
                    let text = &mut self.content[offset..offset + TEXT_BYTES];
                    let time = seconds(text).expect("was read before");
                    text.copy_from_slice(&stamp(time + step_seconds));
                }
                Times::Varint => {
                    let bytes = &mut self.content[offset..offset + VARINT_BYTES];
                    let mut time = varint(bytes).expect("was read before") + step_seconds;
                    for (at, byte) in bytes.iter_mut().enumerate() {
                        let more = if at + 1 < VARINT_BYTES { 0x80 } else { 0 };
                        *byte = u8::try_from(time & 0x7F).expect("seven bits") | more;
                        time >>= 7;
                    }
                }
            }
        }
    }
}

fn word(from: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

/// A number of five bytes; `None` where it is shorter or longer.
fn varint(bytes: &[u8]) -> Option<i64> {
    let (last, before) = bytes.split_last()?;
    let is_varint = before.iter().all(|byte| byte & 0x80 != 0) && last & 0x80 == 0;
    let number = bytes.iter().rev().fold(0, |number, byte| number << 7 | i64::from(byte & 0x7F));
    is_varint.then_some(number)
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:S`, whose last digit is a zero.
fn seconds(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let of_day = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 18)? * 10;
    Some(days(number(0, 4)?, number(5, 7)?, number(8, 10)?) * DAY_SECONDS + of_day)
}

fn stamp(seconds: i64) -> [u8; TEXT_BYTES] {
    let (day, of_day) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, date) = civil(day);
    let mut stamp = *b"0000-00-00T00:00:0";
    let parts = [(0, year / 100), (2, year % 100), (5, month), (8, date)];
    for (at, number) in parts.into_iter().chain([(11, of_day / 3_600), (14, of_day / 60 % 60)]) {
        stamp[at] += u8::try_from(number / 10).expect("two digits");
        stamp[at + 1] += u8::try_from(number % 10).expect("one digit");
    }
    stamp[17] += u8::try_from(of_day % 60 / 10).expect("one digit");
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
    use super::{Request, Times, seconds, stamp};

    #[test]
    fn texts_go_on_over_the_ends_of_days_and_years() {
        for (text, later) in [
            ("2026-12-31T23:59:5", "2027-01-01T00:00:0"),
            ("2028-02-28T23:59:5", "2028-02-29T00:00:0"),
            ("2026-03-01T00:00:0", "2026-03-01T00:00:1"),
        ] {
            let at = seconds(text.as_bytes()).unwrap();
            assert_eq!(stamp(at), text.as_bytes());
            assert_eq!(stamp(at + 10), later.as_bytes());
        }
    }

    #[test]
    fn varints_go_on_where_they_stand() {
        let words = [7_u32, 1, 1].map(u32::to_le_bytes).concat();
        // 2026-03-01T00:00:00Z is 1,772,323,200.
        let file = [&words[..], &[9, 0x80, 0xF3, 0x8D, 0xCD, 0x06, 9]].concat();
        let mut request = Request::read(&mut &file[..], Times::Varint).unwrap();
        request.move_on(Times::Varint, 200);
        assert_eq!(request.content, [9, 0xC8, 0xF4, 0x8D, 0xCD, 0x06, 9]);
        assert!(Request::read(&mut &file[..file.len() - 1], Times::Varint).is_none());
    }
}
