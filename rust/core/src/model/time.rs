//! Instants as nanoseconds since 1970-01-01T00:00:00Z, and their one text form.

use std::ops::RangeInclusive;

use crate::model::swar;

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;
/// 2000-01-01T00:00:00Z, the earliest instant that is stored, in nanoseconds since 1970.
pub const YEAR_2000_NS: i64 = 946_684_800 * SECOND_NS;

const DAY_SECONDS: i64 = 86_400;
/// From 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z, in seconds since 1970.
const TIMESTAMP_SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// Days from 0000-03-01 to 1970-01-01. The calendar arithmetic below begins years in March.
const EPOCH_DAYS: u32 = 719_468;
/// Days of 400 years, the period of the Gregorian calendar.
const ERA_DAYS: u32 = 146_097;
/// Differs from the value of any two digits, so that range checks refuse it.
const NOT_DIGITS: u32 = u32::MAX;

/// Returns the nanoseconds since 1970 of the time `text`, or `None` if `text` is not a time.
///
/// Grammar: `YYYY-MM-DD`, then optionally `T`, `t` or a space and `HH:MM[:SS[.fraction]]` (`,` may
/// stand for `.`), then optionally `Z`, `z`, `±HH:MM` or `±HHMM`. A time without an offset is UTC.
/// Digits after the ninth are cut off. Instants outside the range of `i64` saturate. Years start at
/// 0001. Hours end at 23 and seconds at 59.
///
/// Example: `1970-01-01T01:00:00.5+01:00` is 500,000,000, and `2000-01-01` is [`YEAR_2000_NS`].
#[must_use]
pub fn parse_ns(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_first_chunk::<10>()?;
    let day_start = days_of(date)? * DAY_SECONDS;
    let Some((&[separator, h1, h2, b':', m1, m2], mut rest)) = rest.split_first_chunk::<6>() else {
        return rest.is_empty().then(|| saturated(day_start, 0));
    };
    let (hour, minute) = (pair(h1, h2), pair(m1, m2));
    let (mut second, mut fraction_ns) = (0, 0);
    if let [b':', s1, s2, tail @ ..] = rest {
        second = pair(*s1, *s2);
        rest = tail;
        if let [b'.' | b',', tail @ ..] = rest {
            (fraction_ns, rest) = fraction(tail)?;
        }
    }
    if !matches!(separator, b'T' | b't' | b' ') || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let offset_seconds = match rest {
        [] | [b'Z' | b'z'] => 0,
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => {
            offset(*sign, pair(*h1, *h2), pair(*m1, *m2))?
        }
        _ => return None,
    };
    let seconds = i64::from(hour * 3_600 + minute * 60 + second);
    Some(saturated(day_start + seconds - offset_seconds, fraction_ns))
}

/// Returns the nanoseconds since 1970 of a protobuf `Timestamp`. Returns `None` unless the
/// nanoseconds are within a second and the year is from 0001 to 9999. Saturates as [`parse_ns`]
/// does.
///
/// Example: -1 second and 250,000,000 nanoseconds are -750,000,000.
#[must_use]
pub fn timestamp_ns(seconds: i64, nanos: i32) -> Option<i64> {
    let fraction_ns = i64::from(nanos);
    let sound = TIMESTAMP_SECONDS.contains(&seconds) && (0..SECOND_NS).contains(&fraction_ns);
    sound.then(|| saturated(seconds, fraction_ns))
}

/// Bytes of `YYYY-MM-DDTHH:MM`, and of the same text with the seconds.
const MINUTE_BYTES: usize = 16;
const SECOND_BYTES: usize = 19;
/// Digits of a fraction in nanoseconds.
const NANO_DIGITS: usize = 9;

/// Reads times. It is fastest if many times lie in the same minute and end in the same offset.
pub struct TimeReader {
    /// Text and instant of the minute of the last time with seconds.
    minute: [u8; MINUTE_BYTES],
    minute_ns: i64,
    /// The offset at the end of that time, at most six bytes, and a mask of its bits.
    offset: u64,
    offset_mask: u64,
}

impl Default for TimeReader {
    fn default() -> Self {
        // No text contains this byte, so no text begins with this minute.
        Self { minute: [0xff; MINUTE_BYTES], minute_ns: 0, offset: 0, offset_mask: 0 }
    }
}

impl TimeReader {
    /// Does the same as the function [`parse_ns`].
    #[inline]
    pub fn parse_ns(&mut self, text: &[u8]) -> Option<i64> {
        match self.begins(text) {
            Some((ns, length)) if length == text.len() => Some(ns),
            _ => self.parse_any(text),
        }
    }

    /// Returns the time at the start of `text`, and its length, if the time has the minute and the
    /// form of the last time. It is the whole time if the next byte cannot continue a time.
    #[inline]
    #[must_use]
    pub fn begins(&self, text: &[u8]) -> Option<(i64, usize)> {
        let (minute, rest) = text.split_first_chunk()?;
        let ([b':', s1, s2], rest) = rest.split_first_chunk()? else { return None };
        let second = pair(*s1, *s2);
        if *minute != self.minute || second > 59 {
            return None;
        }
        let (fraction_ns, fraction_bytes) = match rest {
            [b'.', digits @ ..] => short_fraction(digits).map(|(ns, count)| (ns, count + 1))?,
            _ => (0, 0),
        };
        if (swar::word(rest.get(fraction_bytes..)?) ^ self.offset) & self.offset_mask != 0 {
            return None;
        }
        let offset_bytes = (self.offset_mask.trailing_ones() / 8) as usize;
        // This cannot overflow: a minute so close to the end of the range was refused or saturated
        // before.
        let ns = self.minute_ns + i64::from(second) * SECOND_NS + fraction_ns;
        Some((ns, SECOND_BYTES + fraction_bytes + offset_bytes))
    }

    #[cold]
    fn parse_any(&mut self, text: &[u8]) -> Option<i64> {
        let ns = parse_ns(text)?;
        let Some((minute, [b':', _, _, rest @ ..])) = text.split_first_chunk() else {
            return Some(ns);
        };
        let offset = match rest {
            [b'.' | b',', digits @ ..] => fraction(digits)?.1,
            offset => offset,
        };
        if let Some(minute_ns) = parse_ns(&[minute, offset].concat())
            && minute_ns.checked_add(60 * SECOND_NS).is_some()
            && minute_ns > i64::MIN
        {
            let offset_bits = u32::try_from(offset.len() * 8).expect("an offset of six bytes");
            self.offset_mask = (1 << offset_bits) - 1;
            self.offset = swar::word(offset);
            (self.minute, self.minute_ns) = (*minute, minute_ns);
        }
        Some(ns)
    }
}

/// Returns the nanoseconds of the one to nine digits at the start of `text`, and their number.
/// Returns `None` if there are no digits or more than nine.
#[inline]
fn short_fraction(text: &[u8]) -> Option<(i64, usize)> {
    let word = swar::word(text);
    let mut count = swar::digit_count(word);
    let mut value =
        if count < 8 { swar::few_digits(word, count) } else { swar::eight_digits(word) };
    if count == 8
        && let Some(digit @ b'0'..=b'9') = text.get(8)
    {
        value = value * 10 + u64::from(digit - b'0');
        count = NANO_DIGITS;
    }
    if count == 0 || count == NANO_DIGITS && text.get(NANO_DIGITS).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((value.cast_signed() * UNITS_NS[count], count))
}

/// Nanoseconds of the last digit of a fraction, indexed by the number of digits.
const UNITS_NS: [i64; 10] =
    [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Appends `ns` as UTC with `Z` and 0, 3, 6 or 9 fractional digits, 20 to 30 bytes.
///
/// Example: 1,500,000,000 becomes `1970-01-01T00:00:01.500Z`.
pub fn write_rfc3339(out: &mut Vec<u8>, ns: i64) {
    TimeWriter::of(ns).write(out, ns);
}

/// Nanoseconds of a minute.
/// Nanoseconds of a minute.
pub const MINUTE_NS: i64 = 60 * SECOND_NS;

/// Writes times. It is fastest if many times lie in the same minute.
pub struct TimeWriter {
    /// Start of the last minute written. It lies before the first `i64` for times in the first
    /// minute.
    minute_ns: i128,
    /// `YYYY-MM-DDTHH:MM:SS.` of that minute, with room for the rest.
    text: [u8; 32],
}

impl Default for TimeWriter {
    fn default() -> Self {
        Self::of(0)
    }
}

impl TimeWriter {
    /// Returns a writer that holds the minute of `ns`.
    fn of(ns: i64) -> Self {
        let seconds = ns.div_euclid(SECOND_NS);
        let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
        let (year, month, day) = civil_of(days);
        let minute = narrow(second) / 60;
        let mut text = *b"0000-00-00T00:00:00.000000000Z  ";
        put(&mut text, 0, year / 100);
        put(&mut text, 2, year % 100);
        put(&mut text, 5, month);
        put(&mut text, 8, day);
        put(&mut text, 11, minute / 60);
        put(&mut text, 14, minute % 60);
        Self { minute_ns: i128::from(ns) - i128::from(ns.rem_euclid(MINUTE_NS)), text }
    }

    /// Does the same as [`write_rfc3339`].
    #[inline]
    pub fn write(&mut self, out: &mut Vec<u8>, ns: i64) {
        let within = |minute_ns: i128| u64::try_from(i128::from(ns) - minute_ns).ok();
        let since_ns = match within(self.minute_ns) {
            Some(since_ns) if since_ns < MINUTE_NS.unsigned_abs() => since_ns,
            _ => {
                *self = Self::of(ns);
                ns.rem_euclid(MINUTE_NS).unsigned_abs()
            }
        };
        let second_ns = SECOND_NS.unsigned_abs();
        let mut text = self.text;
        let below_2_32 = |value: u64| u32::try_from(value).unwrap_or_default();
        put(&mut text, 17, below_2_32(since_ns / second_ns));
        let fraction_ns = below_2_32(since_ns % second_ns);
        let end = if fraction_ns == 0 {
            19
        } else {
            put(&mut text, 20, fraction_ns / 10_000_000);
            put(&mut text, 22, fraction_ns / 100_000 % 100);
            put(&mut text, 24, fraction_ns / 1_000 % 100);
            put(&mut text, 26, fraction_ns / 10 % 100);
            text[28] = b'0' + digit(fraction_ns % 10);
            match (fraction_ns % 1_000, fraction_ns % 1_000_000) {
                (_, 0) => 23,
                (0, _) => 26,
                _ => 29,
            }
        };
        text[end] = b'Z';
        let length = out.len() + end + 1;
        out.extend_from_slice(&text);
        out.truncate(length);
    }
}

/// Writes two digits at an index.
#[inline]
fn put(text: &mut [u8; 32], at: usize, value: u32) {
    text[at] = b'0' + digit(value / 10);
    text[at + 1] = b'0' + digit(value % 10);
}

/// Returns the value of two digits, or [`NOT_DIGITS`] for other bytes.
fn pair(tens: u8, ones: u8) -> u32 {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens.max(ones) > 9 { NOT_DIGITS } else { u32::from(tens) * 10 + u32::from(ones) }
}

/// Returns the days from 1970-01-01 to the date `YYYY-MM-DD`.
fn days_of(date: &[u8; 10]) -> Option<i64> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else {
        return None;
    };
    let (century, year) = (pair(y1, y2), pair(y3, y4));
    let (month, day) = (pair(m1, m2), pair(d1, d2));
    if century > 99 || year > 99 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let year = century * 100 + year;
    if year == 0 || day > month_days(year, month) {
        return None;
    }
    // A year that begins in March ends with the leap day, and its month lengths follow one line.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(i64::from(days) - i64::from(EPOCH_DAYS))
}

fn month_days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns year, month and day of the date `days` after 1970-01-01. The inverse of [`days_of`].
fn civil_of(days: i64) -> (u32, u32, u32) {
    // Every i64 of nanoseconds is in the years 1677 to 2262, so the sum stays positive.
    let days = narrow(days + i64::from(EPOCH_DAYS));
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Returns the nanoseconds of the digits at the start of `text`, at least one, and the text after
/// them.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let (mut ns, mut unit_ns) = (0, SECOND_NS / 10);
    let mut rest = text;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        // From the tenth digit on the unit is 0, which cuts the digit off.
        ns += i64::from(digit - b'0') * unit_ns;
        unit_ns /= 10;
        rest = tail;
    }
    (rest.len() < text.len()).then_some((ns, rest))
}

fn offset(sign: u8, hours: u32, minutes: u32) -> Option<i64> {
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = i64::from(hours * 3_600 + minutes * 60);
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn saturated(seconds: i64, fraction_ns: i64) -> i64 {
    if let Some(ns) = seconds.checked_mul(SECOND_NS).and_then(|ns| ns.checked_add(fraction_ns)) {
        return ns;
    }
    // The product alone may leave the range although the sum is inside.
    let ns = i128::from(seconds) * i128::from(SECOND_NS) + i128::from(fraction_ns);
    i64::try_from(ns).unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })
}

fn narrow(value: i64) -> u32 {
    u32::try_from(value).expect("calendar arithmetic stays within u32")
}

fn digit(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

#[cfg(test)]
mod tests;
