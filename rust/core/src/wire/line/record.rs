//! Reads a record, which is a line.

use super::parser::{BrokenLine, LineParser, LineParts};
use crate::model::fault::{Fault, FaultCode, LocationStep};
use crate::model::limits::FAULTS_MAX;
use crate::wire::columns::{AcceptedRecord, UNKNOWN_COLUMN};
use crate::wire::faults::NOWHERE;
use crate::wire::rules::{is_rejected, is_stored};
use crate::wire::template::SlotKind;
use crate::wire::tokens::json::Scanner;
use crate::wire::tokens::line::{
    IntegerFault, MEASUREMENT, integer, is_end, line_length, skip_spaces, string, tags_length,
    unquoted,
};
use crate::wire::value::FieldCell;

impl<'a, 'c> LineParser<'a, 'c> {
    /// Reads the record that begins here. Accepts or rejects it, unless the batch is already
    /// refused. Returns the offset of the end of its line.
    pub(super) fn record(&mut self, mut scan: Scanner<'a>) -> usize {
        let start = scan.at;
        self.cells.clear();
        self.templates.begin_record();
        let parts = self.parts(&mut scan);
        self.has_texts |= scan.text.get(start..scan.at).unwrap_or_default().contains('"');
        if let Ok(parts) = parts {
            if self.end_record(&parts) {
                let Self { text, templates, batch, cells, .. } = self;
                templates.learn(text, (start, scan.at), parts.key(), batch, cells);
            }
        } else {
            let is_open = scan.peek() == b'"' && string(&mut { scan }).is_none();
            if is_open && self.open_at.is_none() {
                self.open_at = Some(start);
            }
            self.faults.push(scan.at, FaultCode::LineInvalid, self.received, &[]);
            scan.at += line_length(scan.rest());
        }
        if self.adapter.is_none() {
            self.faults.end_record();
        } else if let Some(fault) = self.faults.take_record() {
            self.reject(fault);
        }
        scan.at
    }

    /// Rejects the current record for its first fault.
    #[cold]
    pub(super) fn reject(&mut self, mut fault: Fault) {
        if self.received >= self.batch.limits.batch_records_max {
            return;
        }
        if let Some(first) = fault.loc.first_mut() {
            *first = LocationStep::Index(self.line_count + 1);
        }
        let record = u32::try_from(self.received).expect("bounded by the records of a batch");
        let batch = self.batch.columns.batch();
        batch.rejected_indices.push(record);
        if batch.dropped.len() < FAULTS_MAX {
            batch.dropped.push(fault);
        }
    }

    fn parts(&mut self, scan: &mut Scanner<'a>) -> Result<LineParts<'a, 'c>, BrokenLine> {
        let start = scan.at;
        let measurement = MEASUREMENT.read(scan, self.backslashes);
        if measurement.is_empty() {
            self.faults.push(start, FaultCode::StringTooShort, self.received, &["measurement"]);
        }
        let mapped = self.adapter.map(|adapter| adapter.mapping.find(&measurement));
        let measurement = match &mapped {
            Some((_, rule)) if !measurement.is_empty() => rule.measurement(measurement),
            _ => measurement,
        };
        let tags_start = scan.at;
        scan.at += tags_length(scan.rest(), self.backslashes).unwrap_or_else(|| rest_length(*scan));
        let tags = scan.text.get(tags_start..scan.at).unwrap_or_default();
        self.templates.note(tags_start..scan.at, SlotKind::Tags);
        skip_spaces(scan);
        if !is_end(scan.bytes(), scan.at) {
            self.fields(scan, &measurement, mapped.as_ref().map(|(_, rule)| *rule))?;
        }
        skip_spaces(scan);
        let time_ns = if is_end(scan.bytes(), scan.at) {
            Some(self.default_ns)
        } else {
            let time_ns = self.time(scan);
            skip_spaces(scan);
            if !is_end(scan.bytes(), scan.at) {
                return Err(BrokenLine);
            }
            time_ns
        };
        Ok(LineParts { measurement, mapped, tags, time_ns })
    }

    /// Reads the time that begins here, in nanoseconds since 1970. If it is not a time, notes a
    /// fault and returns `None`.
    fn time(&mut self, scan: &mut Scanner<'a>) -> Option<i64> {
        let start = scan.at;
        let text = unquoted(scan);
        let fault = match integer(text.as_bytes()) {
            Ok((time, length)) if length == text.len() => {
                self.templates.note(start..scan.at, SlotKind::Time);
                return Some(self.precision.instant_ns(time));
            }
            Err(IntegerFault::Size) => FaultCode::IntParsingSize,
            Ok(_) | Err(IntegerFault::Syntax) => FaultCode::IntParsing,
        };
        self.faults.push(start, fault, self.received, &["time"]);
        None
    }

    /// Decides on a record after it is read. Returns true if the record is accepted.
    fn end_record(&mut self, parts: &LineParts<'a, 'c>) -> bool {
        self.faults.next_pass();
        let rejected = is_rejected(!self.cells.is_empty(), parts.time_ns);
        if self.adapter.is_some() {
            self.check_alone(parts);
        }
        let series = self.series_of(parts, !rejected);
        if !self.is_sound() {
            return false;
        }
        let record = u32::try_from(self.received).expect("bounded by the records of a batch");
        let columns = &mut self.batch.columns;
        match (parts.time_ns, series) {
            (Some(sent_ns), Some(series)) if !rejected => {
                let time_ns = columns.clamp(sent_ns);
                let (measurement, cells_table) = (&*parts.measurement, self.cells_table);
                columns.accept(
                    &AcceptedRecord { record, measurement, series, time_ns, cells_table },
                    &mut self.cells,
                );
                true
            }
            _ => {
                columns.batch().rejected_indices.push(record);
                false
            }
        }
    }
}

impl LineParser<'_, '_> {
    /// Notes faults of the record that would otherwise refuse the batch only at its end, or reject
    /// the record without a fault.
    fn check_alone(&mut self, parts: &LineParts<'_, '_>) {
        if self.cells.is_empty() {
            self.faults.push(NOWHERE, FaultCode::NoFields, self.received, &[]);
        } else if parts.time_ns.is_some_and(|time_ns| !is_stored(time_ns)) {
            self.faults.push(NOWHERE, FaultCode::TimeTooEarly, self.received, &["time"]);
        }
        if let Some(name) = self.conflict(&parts.measurement) {
            self.faults.push(NOWHERE, FaultCode::TypeConflict, self.received, &["fields", &name]);
        }
    }

    /// Returns the first field of the record that was written with another type before.
    fn conflict(&self, measurement: &str) -> Option<String> {
        let adapter = self.adapter?;
        let known = |cell: &FieldCell<'_>| {
            let table = self.cells_table.filter(|_| cell.column != UNKNOWN_COLUMN);
            table.and_then(|table| self.batch.columns.field_type(table, cell.column))
        };
        let cell = self.cells.iter().find(|cell| {
            let before = known(cell).or_else(|| adapter.known_type(measurement, &cell.name));
            before.is_some_and(|before| before != cell.value.field_type())
        });
        cell.map(|cell| cell.name.to_string())
    }
}

/// Returns the length of the rest of a line, without its line ending.
fn rest_length(scan: Scanner<'_>) -> usize {
    let length = line_length(scan.rest());
    let has_return = length > 0 && is_end(scan.rest(), length - 1);
    length - usize::from(has_return)
}
