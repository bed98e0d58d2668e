//! Values by name, tags and time on their way into rows.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::series_by_name::SeriesByName;
use crate::model::batch::{FieldType, ParseResult};
use crate::model::fault::{BatchRefusal, Fault, FaultCode, LocationStep};
use crate::model::limits::FAULTS_MAX;
use crate::wire::ParseContext;
use crate::wire::builder::BatchBuilder;
use crate::wire::columns::{AcceptedRecord, UNKNOWN_COLUMN};
use crate::wire::mapping::{Adapter, Rule};
use crate::wire::rules::{TENANT_TAGS, TagPairs, is_stored, series_name};
use crate::wire::tokens::protobuf::ProtobufResult;
use crate::wire::value::{CellValue, FieldCell};

/// Measurement of metrics whose rule names no measurement.
const MEASUREMENT: &str = "telemetry";

/// A protocol.
pub(super) struct MetricProtocol {
    /// First byte of its raw keys.
    pub(super) raw_key_format: u8,
    /// Tags that name an entity if no rule does.
    pub(super) entities: &'static [&'static str],
    /// True if reads by labels show its tags as they were sent.
    pub(super) is_remote_write: bool,
}

/// Names under which a metric is stored.
#[derive(Clone, Copy)]
pub(super) struct MetricNames<'c> {
    rule_key: &'c str,
    rule: &'c Rule,
    measurement: &'c str,
}

/// A value without a fault so far.
struct Point {
    series: u32,
    time_ns: i64,
    /// Index of its field.
    field: u32,
    /// Number of the value in the order of arrival.
    record: u32,
    value: f64,
}

/// A field of the values of a body. Its name is kept once.
struct PointField<'a, 'c> {
    name: Cow<'a, str>,
    measurement: &'c str,
    /// Type of the field, if it is known to be stored.
    known_type: Option<FieldType>,
}

/// Values of a body while it is read. `'a` is the body, `'c` the caller's context.
pub(super) struct Points<'a, 'c> {
    kind: &'static MetricProtocol,
    adapter: Adapter<'c>,
    batch: BatchBuilder<'c>,
    by_name: SeriesByName<'c>,
    list: Vec<Point>,
    fields: Vec<PointField<'a, 'c>>,
    field_index: HashTable<u32>,
    hasher: RandomState,
    /// Field of the last lookup: the next lookup most likely asks for the same field.
    last_field: u32,
    /// Bytes of names that were built: so far, and at most.
    made_bytes: usize,
    made_bytes_max: usize,
    /// Number of values so far. Several may belong to one point.
    pub(super) received: usize,
}

impl<'a, 'c> Points<'a, 'c> {
    pub(super) fn new(
        kind: &'static MetricProtocol,
        adapter: Adapter<'c>,
        context: ParseContext<'c>,
    ) -> Self {
        let made_bytes_max = context.names_bytes_max;
        Self {
            kind,
            adapter,
            batch: BatchBuilder::new(kind.raw_key_format, context),
            by_name: SeriesByName::new(adapter.catalog),
            list: Vec::new(),
            fields: Vec::new(),
            field_index: HashTable::new(),
            hasher: RandomState::default(),
            last_field: 0,
            made_bytes: 0,
            made_bytes_max,
            received: 0,
        }
    }

    /// Returns the names of the metric `name`.
    pub(super) fn names(&self, name: &str) -> MetricNames<'c> {
        let (rule_key, rule) = self.adapter.mapping.find_rule(name);
        MetricNames {
            rule_key,
            rule,
            measurement: rule.measurement.as_deref().unwrap_or(MEASUREMENT),
        }
    }

    /// Returns true if values are kept, false if they are only counted.
    pub(super) fn keeps(&self) -> bool {
        self.received < self.batch.limits.batch_records_max && !self.is_full()
    }

    /// Returns true if the names are too long, so that the body is refused.
    const fn is_full(&self) -> bool {
        self.made_bytes > self.made_bytes_max || self.batch.series.is_full()
    }

    /// Returns the field that is sent as `name`, which is not empty.
    pub(super) fn field(&mut self, names: MetricNames<'c>, name: Cow<'a, str>) -> u32 {
        let measurement = names.measurement;
        let name = names.rule.field(name);
        if let Cow::Owned(name) = &name {
            self.made_bytes += name.len();
        }
        let Self { fields, field_index, hasher, .. } = self;
        let is_it = |&at: &u32| {
            let field = fields.get(at as usize);
            field.is_some_and(|field| field.name == name && field.measurement == measurement)
        };
        if is_it(&self.last_field) {
            return self.last_field;
        }
        let hash = hasher.hash_one(&*name);
        let at = if let Some(&at) = field_index.find(hash, is_it) {
            at
        } else {
            let at = u32::try_from(fields.len()).expect("each has bytes of its own");
            let known_type = self.adapter.known_type(measurement, &name);
            fields.push(PointField { name, measurement, known_type });
            let rehash = |&at: &u32| hasher.hash_one(&*fields[at as usize].name);
            field_index.insert_unique(hash, at, rehash);
            at
        };
        self.last_field = at;
        at
    }

    /// Returns the number of fields that a record may have.
    pub(super) fn fields_max(&self) -> usize {
        self.batch.limits.fields_max
    }

    /// Returns the number of tags that a series may have, including tags whose value the tenant's
    /// key replaces.
    pub(super) fn tags_max(&self) -> usize {
        self.batch.limits.tags_max + TENANT_TAGS.len()
    }

    /// Returns the series of tags with these bytes. `read` parses them if they are new. Returns
    /// `None` if they are not acceptable.
    pub(super) fn series<'t>(
        &mut self,
        names: MetricNames<'c>,
        tags: &[u8],
        read: impl FnOnce() -> ProtobufResult<TagPairs<'t>>,
    ) -> ProtobufResult<Option<u32>> {
        let BatchBuilder { series, limits, tenant_key, .. } = &mut self.batch;
        let unknown = match series.find(names.rule_key, tags) {
            Ok(known) => return Ok(Some(self.by_name.series_of(known))),
            Err(unknown) => unknown,
        };
        let mut pairs = read()?;
        let entity = names.rule.name_entity(&mut pairs, self.kind.entities);
        let name = series_name(names.measurement, pairs, tenant_key, limits);
        let Some(mut name) = name else { return Ok(None) };
        if self.kind.is_remote_write {
            name = name.of_remote_write(&entity.unwrap_or_default());
        }
        let number = series.add(&name, unknown, names.rule_key, tags);
        Ok(Some(self.by_name.add(series, number)))
    }

    /// Takes a value of the record that is being read.
    ///
    /// # Errors
    /// Returns the fault for which the record is to be rejected.
    pub(super) fn take(
        &mut self,
        series: u32,
        time_ns: i64,
        field: u32,
        value: f64,
    ) -> Result<(), FaultCode> {
        let known_type = self.fields.get(field as usize).and_then(|field| field.known_type);
        let fault = match known_type {
            _ if !is_stored(time_ns) => Some(FaultCode::TimeTooEarly),
            Some(before) if before != FieldType::Float => Some(FaultCode::TypeConflict),
            _ if !value.is_finite() => Some(FaultCode::FiniteNumber),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(fault);
        }
        let record = self.record();
        self.list.push(Point { series, time_ns, field, record, value });
        Ok(())
    }

    /// Rejects the record that is being read, and removes its values that were taken. `fault` comes
    /// with the number that its location reports.
    #[cold]
    pub(super) fn reject(&mut self, fault: Option<(usize, FaultCode, &str)>) {
        if !self.keeps() {
            return;
        }
        let record = self.record();
        while self.list.pop_if(|point| point.record == record).is_some() {}
        let batch = self.batch.columns.batch();
        batch.rejected_indices.push(record);
        if let Some((number, code, key)) = fault.filter(|_| batch.dropped.len() < FAULTS_MAX) {
            let key = (!key.is_empty()).then(|| LocationStep::key(key));
            let loc = std::iter::once(LocationStep::Index(number)).chain(key).collect();
            batch.dropped.push(Fault { code, loc });
        }
    }

    fn record(&self) -> u32 {
        u32::try_from(self.received).expect("bounded by the records of a batch")
    }

    /// Returns the batch of rows: a row for all values of one series and time. If a field has two
    /// values in a row, the value that came last counts.
    pub(super) fn finish(mut self) -> ParseResult {
        let (received, max) = (self.received, self.batch.limits.batch_records_max);
        if received > max {
            return Err(BatchRefusal::TooManyRecords { received, max });
        }
        if self.is_full() {
            return Err(BatchRefusal::InvalidInput { field: "names" });
        }
        let (mut list, fields) = (std::mem::take(&mut self.list), std::mem::take(&mut self.fields));
        let field_of = |point: &Point| &fields[point.field as usize];
        list.sort_by(|one, other| {
            let order = (one.series, one.time_ns).cmp(&(other.series, other.time_ns));
            order.then_with(|| field_of(one).name.cmp(&field_of(other).name))
        });
        let mut cells: Vec<FieldCell<'_>> = Vec::new();
        let mut points = list.iter().peekable();
        while let Some(point) = points.next() {
            let same =
                |next: &&&Point| (next.series, next.time_ns) == (point.series, point.time_ns);
            let next = points.peek().filter(same);
            if next.is_some_and(|next| next.field == point.field) {
                continue;
            }
            let is_last = next.is_none() || cells.len() + 1 >= self.batch.limits.fields_max;
            let PointField { name, measurement, .. } = field_of(point);
            let (name, value) = (Cow::Borrowed(&**name), CellValue::Float(point.value));
            cells.push(FieldCell { name, column: UNKNOWN_COLUMN, value });
            if is_last {
                let columns = &mut self.batch.columns;
                let time_ns = columns.clamp(point.time_ns);
                let Point { series, record, .. } = *point;
                let row =
                    AcceptedRecord { record, measurement, series, time_ns, cells_table: None };
                columns.accept(&row, &mut cells);
                cells.clear();
            }
        }
        self.batch.finish()
    }
}
