//! From the bytes of a measurement and its tags to a series.

use std::borrow::Cow;

use super::array::Parser;
use super::record::RECORD_DEPTH;
use super::scan::{Scan, Scanner};
use crate::model::fault::FaultCode;
use crate::model::swar;
use crate::wire::rules::{self, series_name};

/// The spelling of the tags of a record that has none.
const NO_TAGS: &str = "{}";

/// Tags that a record has room for at first.
const PAIRS_EXPECTED: usize = 8;

/// What a record says about its tags.
#[derive(Clone, Copy)]
pub(super) enum Tags<'a> {
    /// The key is absent.
    Absent,
    /// The value is not an object.
    Faulty,
    /// Spelled as those of a known series of the record's measurement.
    Known(u32),
    /// An object that starts here and that nothing but the syntax is known of.
    Unchecked(usize, &'a str),
}

impl<'a> Parser<'a, '_> {
    /// The value of `tags`. Where it is spelled as the tags of a known series of `measurement`,
    /// it is taken without looking inside: what was accepted once under these very bytes is a
    /// complete and valid object, so an object that begins with them also ends with them.
    ///
    /// Also returns the place behind it.
    #[inline]
    pub(super) fn tags(
        &mut self,
        scan: Scanner<'a>,
        measurement: Option<&str>,
    ) -> Scan<(Tags<'a>, usize)> {
        if let Some(measurement) = measurement
            && let Some(length) = first_brace_end(scan.rest())
        {
            let spelling = scan.rest().get(..length).unwrap_or_default();
            if let Ok(series) = self.series.find(measurement, spelling) {
                return Ok((Tags::Known(series), scan.at + length));
            }
        }
        let end = scan.value_end(RECORD_DEPTH)?;
        if scan.peek() != b'{' {
            return Ok((Tags::Faulty, end));
        }
        Ok((Tags::Unchecked(scan.at, scan.span(scan.at, end)?), end))
    }

    /// The series of a record, which becomes a new one of the batch if it is unknown and the
    /// record is `accepted`. `None` where the record has faults or its tags refuse the batch;
    /// both are noted.
    #[inline]
    pub(super) fn series_of(
        &mut self,
        index: usize,
        measurement: Option<&Cow<'a, str>>,
        tags: Tags<'a>,
        accepted: bool,
    ) -> Scan<Option<u32>> {
        let (start, tags) = match tags {
            Tags::Known(series) => return Ok(Some(series)),
            Tags::Faulty => return Ok(None),
            Tags::Absent => (None, NO_TAGS),
            Tags::Unchecked(start, tags) => (Some(start), tags),
        };
        let unknown = match measurement {
            Some(measurement) => match self.series.find(measurement, tags.as_bytes()) {
                Ok(series) => return Ok(Some(series)),
                Err(unknown) => Some((measurement, unknown)),
            },
            None => None,
        };
        let pairs = start.map_or(Ok(Vec::new()), |start| self.parse_tags(index, start))?;
        if !self.faults.are_none() {
            return Ok(None);
        }
        let Some((measurement, unknown)) = unknown else {
            return Ok(None);
        };
        let Some(name) = series_name(measurement, pairs, self.tenant_key, self.limits) else {
            self.tags_refused = true;
            return Ok(None);
        };
        if !accepted {
            return Ok(None);
        }
        Ok(Some(self.series.add(name, unknown, measurement, tags.as_bytes())))
    }

    /// Keys and values of the tags object at `start`; faults of record `index` are noted.
    #[cold]
    fn parse_tags(&mut self, index: usize, start: usize) -> Scan<rules::Tags<'a>> {
        let mut scan = Scanner::new(self.text, start);
        let mut pairs = Vec::new();
        self.keys.clear();
        scan.expect(b'{')?;
        let mut more = scan.first(b'}');
        while more {
            let key_at = scan.at;
            let key = scan.string()?;
            scan.colon()?;
            if !self.keys.insert(key.clone()) {
                self.faults.push(key_at, FaultCode::DuplicateKey, index, &["tags", &key]);
                scan.at = scan.value_end(RECORD_DEPTH + 1)?;
            } else if scan.peek() == b'"' {
                pairs.push((key, scan.string()?));
            } else {
                self.faults.push(key_at, FaultCode::StringType, index, &["tags", &key]);
                scan.at = scan.value_end(RECORD_DEPTH + 1)?;
            }
            more = scan.next(b'}')?;
        }
        Ok(pairs)
    }
}

/// Keys and values of the object that `text` is, if all values are strings and nothing is wrong with
/// it. The same key may come twice.
pub(super) fn plain_tags(text: &str) -> Option<rules::Tags<'_>> {
    let mut pairs = Vec::with_capacity(PAIRS_EXPECTED);
    let mut scan = Scanner::new(text, 0);
    scan.expect(b'{').ok()?;
    let mut more = scan.first(b'}');
    while more {
        let key = scan.string().ok()?;
        scan.colon().ok()?;
        pairs.push((key, scan.string().ok()?));
        more = scan.next(b'}').ok()?;
    }
    (scan.at == text.len()).then_some(pairs)
}

/// The length up to and with the first closing brace.
#[inline]
pub(super) fn first_brace_end(bytes: &[u8]) -> Option<usize> {
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let found = swar::equal_bytes(u64::from_le_bytes(*chunk), b'}');
        if found != 0 {
            return Some(at * 8 + (found.trailing_zeros() / 8) as usize + 1);
        }
    }
    let in_tail = tail.iter().position(|&byte| byte == b'}')?;
    Some(bytes.len() - tail.len() + in_tail + 1)
}
