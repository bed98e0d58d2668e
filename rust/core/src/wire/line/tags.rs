//! The tags of a record, which make its series.

use super::parser::{Parser, Parts};
use crate::model::fault::FaultCode;
use crate::wire::rules::{Tags, series_name};
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::tag;

impl<'a> Parser<'a, '_> {
    /// The series of a record, which becomes a new one of the batch if it is unknown and the record
    /// is `accepted`. `None` where the record has faults or its tags refuse the batch; both are noted.
    pub(super) fn series_of(&mut self, parts: &Parts<'a, '_>, accepted: bool) -> Option<u32> {
        let Parts { measurement, tags, .. } = parts;
        let unknown = match self.batch.series.find(parts.key(), tags.as_bytes()) {
            Ok(series) => return Some(series),
            Err(unknown) => unknown,
        };
        let mut pairs = self.parse_tags(tags);
        if let Some((_, rule)) = &parts.mapped {
            rule.name_entity(&mut pairs, &[]);
        }
        if !self.faults.are_none() {
            return None;
        }
        let name = series_name(measurement, pairs, self.batch.tenant_key, self.batch.limits);
        let Some(name) = name else {
            self.faults.tags_refused = true;
            return None;
        };
        // Beyond the bound on records nothing is kept.
        if !accepted || !self.is_sound() {
            return None;
        }
        Some(self.batch.series.add(&name, unknown, parts.key(), tags.as_bytes()))
    }

    /// Keys and values of `tags`; faults are noted.
    #[cold]
    fn parse_tags(&mut self, tags: &'a str) -> Tags<'a> {
        let mut pairs = Vec::new();
        let mut scan = Scanner::new(tags, 0);
        self.keys.clear();
        while scan.take(b',') {
            let Some((key, value)) = tag(&mut scan) else {
                self.faults.push(0, FaultCode::LineInvalid, self.received, &[]);
                break;
            };
            if self.keys.insert(key.clone()) {
                pairs.push((key, value));
            } else {
                self.faults.push(0, FaultCode::DuplicateKey, self.received, &["tags", &key]);
            }
        }
        pairs
    }
}
