//! Reads the `tags` of a record and finds its series.

use std::borrow::Cow;

use super::parser::{JsonParser, RECORD_DEPTH};
use crate::model::fault::FaultCode;
use crate::wire::rules::{self, series_name};
use crate::wire::tokens::json::{JsonResult, Scanner};

/// Stands for the tags of a record without tags.
const NO_TAGS: &str = "{}";

/// Tags of a record, as far as they have been read.
#[derive(Clone, Copy)]
pub(super) enum JsonTags<'a> {
    /// The key is absent.
    Absent,
    /// The value is not an object.
    Faulty,
    /// Tags of a known series of the record's measurement, byte for byte.
    Known(u32),
    /// An object that starts at this offset. Only its syntax has been checked.
    Unchecked(usize, &'a str),
}

impl<'a> JsonParser<'a, '_> {
    /// Reads the value of `tags`. Returns it with the offset after it. If its bytes equal the tags
    /// of a known series of `measurement`, they are not parsed. Bytes that were accepted once are a
    /// complete and valid object, so an object that begins with them also ends with them.
    #[inline]
    pub(super) fn tags(
        &mut self,
        scan: Scanner<'a>,
        measurement: Option<&str>,
    ) -> JsonResult<(JsonTags<'a>, usize)> {
        if let Some(measurement) = measurement
            && let Some(length) = scan.first_brace_length()
        {
            let raw_tags = scan.rest().get(..length).unwrap_or_default();
            if let Ok(series) = self.batch.series.find(measurement, raw_tags) {
                return Ok((JsonTags::Known(series), scan.at + length));
            }
        }
        let end = scan.value_end(RECORD_DEPTH)?;
        if scan.peek() != b'{' {
            return Ok((JsonTags::Faulty, end));
        }
        Ok((JsonTags::Unchecked(scan.at, scan.span(scan.at, end)?), end))
    }

    /// Returns the series of a record. An unknown series becomes a new series of the batch if the
    /// record is `accepted`. Returns `None` if the record has faults or its tags refuse the batch;
    /// both are noted.
    #[inline]
    pub(super) fn series_of(
        &mut self,
        index: usize,
        measurement: Option<&Cow<'a, str>>,
        tags: JsonTags<'a>,
        accepted: bool,
    ) -> JsonResult<Option<u32>> {
        let (start, tags) = match tags {
            JsonTags::Known(series) => return Ok(Some(series)),
            JsonTags::Faulty => return Ok(None),
            JsonTags::Absent => (None, NO_TAGS),
            JsonTags::Unchecked(start, tags) => (Some(start), tags),
        };
        let unknown = match measurement {
            Some(measurement) => match self.batch.series.find(measurement, tags.as_bytes()) {
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
        let Some(name) = series_name(measurement, pairs, self.batch.tenant_key, self.batch.limits)
        else {
            self.faults.tags_refused = true;
            return Ok(None);
        };
        if !accepted {
            return Ok(None);
        }
        Ok(Some(self.batch.series.add(&name, unknown, measurement, tags.as_bytes())))
    }

    /// Returns keys and values of the tags object at `start`. Notes faults of record `index`.
    #[cold]
    fn parse_tags(&mut self, index: usize, start: usize) -> JsonResult<rules::TagPairs<'a>> {
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
