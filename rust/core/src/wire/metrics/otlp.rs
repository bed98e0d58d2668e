//! Metrics of OpenTelemetry's protocol.
//!
//! Gauges and sums are a field with the metric's name. A histogram is `NAME_count`, `NAME_sum`,
//! `NAME_min`, `NAME_max`, and for each bound `NAME_bucket_BOUND`, the number of values not above
//! it. Example: the counts 2, 3, 1 with the bounds 10 and 20 give `NAME_bucket_10` = 2 and
//! `NAME_bucket_20` = 5. Exponential histograms and summaries are rejected. Points without a
//! recorded value are skipped.

use std::borrow::Cow;

use super::attributes::{DIGESTED_BYTES_MIN, begin_key, read, tags_of_resource};
use super::points::{MetricNames, MetricProtocol, Points};
use crate::model::batch::ParseResult;
use crate::model::fault::{BatchRefusal, FaultCode};
use crate::model::limits::TAGS_BYTES_MAX;
use crate::wire::ParseContext;
use crate::wire::mapping::Adapter;
use crate::wire::tokens::protobuf::{
    MalformedMessage, MessageReader, ProtobufResult, delimited, fixed64, nearest, text, varint,
};

/// `ExportMetricsServiceRequest.resource_metrics`
const RESOURCE_METRICS: u32 = delimited(1);
/// Fields of `ResourceMetrics`.
const RESOURCE: u32 = delimited(1);
const SCOPE_METRICS: u32 = delimited(2);
/// `ScopeMetrics.metrics`
const METRICS: u32 = delimited(2);
/// Fields of `Metric`.
const NAME: u32 = delimited(1);
const GAUGE: u32 = delimited(5);
const SUM: u32 = delimited(7);
const HISTOGRAM: u32 = delimited(9);
const EXPONENTIAL_HISTOGRAM: u32 = delimited(10);
const SUMMARY: u32 = delimited(11);
/// `data_points` of all kinds.
const DATA_POINTS: u32 = delimited(1);
/// Fields of points of all kinds.
const TIME: u32 = fixed64(3);
/// Fields of `NumberDataPoint`.
const NUMBER_ATTRIBUTES: u32 = delimited(7);
const AS_DOUBLE: u32 = fixed64(4);
const AS_INT: u32 = fixed64(6);
const NUMBER_FLAGS: u32 = varint(8);
/// Fields of `HistogramDataPoint`.
const HISTOGRAM_ATTRIBUTES: u32 = delimited(9);
const COUNT: u32 = fixed64(4);
const SUM_OF: u32 = fixed64(5);
const BUCKET_COUNTS: u32 = delimited(6);
const BUCKET_COUNT: u32 = fixed64(6);
const BOUNDS: u32 = delimited(7);
const BOUND: u32 = fixed64(7);
const HISTOGRAM_FLAGS: u32 = varint(10);
const MIN: u32 = fixed64(11);
const MAX: u32 = fixed64(12);

/// Texts after the name of a metric that name its fields, and their indices.
const ENDS: [&str; 5] = ["", "_count", "_sum", "_min", "_max"];
const END_COUNT: usize = 1;
const END_SUM: usize = 2;
const END_MIN: usize = 3;
const END_MAX: usize = 4;

const NO_RECORDED_VALUE: u64 = 1;
const KIND: MetricProtocol = MetricProtocol {
    raw_key_format: b'o',
    entities: &["service.instance.id", "host.name", "service.name"],
    is_remote_write: false,
};

/// Reads an `ExportMetricsServiceRequest` into a batch.
///
/// # Errors
/// Returns the errors of [`crate::wire::parse_remote_write`]. A fault rejects only its data point,
/// with the number of the point.
///
/// # Panics
/// Panics as [`crate::wire::parse_json`] does.
pub fn parse_otlp(body: &[u8], adapter: Adapter<'_>, context: ParseContext<'_>) -> ParseResult {
    let points = Points::new(&KIND, adapter, context.of_shared_names(body));
    let mut reading = OtlpParser {
        points,
        resource: Cow::Borrowed(&[]),
        is_refused: false,
        key: Vec::new(),
        key_start: 0,
        fields: MetricFields::default(),
    };
    let outcome = each(body, RESOURCE_METRICS, |bytes| reading.resource_metrics(bytes));
    if outcome.is_err() {
        return Err(BatchRefusal::InvalidInput { field: "payload" });
    }
    reading.points.finish()
}

/// Calls `take` for each field `wanted` of a message. Skips other fields.
fn each<'a>(
    bytes: &'a [u8],
    wanted: u32,
    mut take: impl FnMut(&'a [u8]) -> ProtobufResult<()>,
) -> ProtobufResult<()> {
    let mut reader = MessageReader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            tag if tag == wanted => take(reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    Ok(())
}

/// State of a message that is being read.
struct OtlpParser<'a, 'c> {
    points: Points<'a, 'c>,
    /// Attributes of the resource that is being read.
    resource: Cow<'a, [u8]>,
    /// If true, the resource has more tags than a series may have, in bytes or by number.
    is_refused: bool,
    /// Raw key of the series of a point: the resource or its digest, then the point's attributes.
    key: Vec<u8>,
    /// Offset of the point's attributes.
    key_start: usize,
    /// Fields of the metric that is being read.
    fields: MetricFields,
}

/// Fields of one metric that earlier points had, so that each name is built once.
#[derive(Default)]
struct MetricFields {
    /// By index in [`ENDS`].
    plain: [Option<u32>; ENDS.len()],
    /// Bound and field of each bucket of the previous point.
    buckets: Vec<(u64, u32)>,
}

/// A metric that is being read.
#[derive(Clone, Copy)]
struct Metric<'a, 'c> {
    name: &'a str,
    names: MetricNames<'c>,
}

/// A field of a point: index in [`ENDS`], and the value.
type PointPart = (usize, f64);

impl<'a, 'c> OtlpParser<'a, 'c> {
    fn resource_metrics(&mut self, bytes: &'a [u8]) -> ProtobufResult<()> {
        // A message that appears twice is merged, wherever its parts are.
        let mut resource = Cow::Borrowed(&[][..]);
        each(bytes, RESOURCE, |part| {
            if resource.is_empty() {
                resource = Cow::Borrowed(part);
            } else {
                resource.to_mut().extend_from_slice(part);
            }
            Ok(())
        })?;
        // Each point of a new series reads the tags of the resource. Leave out attributes that are
        // no tags, and refuse more tags than a series may have, before that.
        self.is_refused = resource.len() > TAGS_BYTES_MAX;
        if resource.len() >= DIGESTED_BYTES_MIN && !self.is_refused {
            let (tags, count) = tags_of_resource(&resource)?;
            self.is_refused = count > self.points.tags_max();
            resource = Cow::Owned(tags);
        }
        begin_key(&mut self.key, &resource);
        self.key_start = self.key.len();
        self.resource = resource;
        each(bytes, SCOPE_METRICS, |scope| each(scope, METRICS, |metric| self.metric(metric)))
    }

    fn metric(&mut self, bytes: &'a [u8]) -> ProtobufResult<()> {
        let (mut name, mut data) = ("", None);
        let mut reader = MessageReader::new(bytes);
        while !reader.is_empty() {
            match reader.tag()? {
                NAME => name = text(reader.delimited()?)?,
                kind @ (GAUGE | SUM | HISTOGRAM | EXPONENTIAL_HISTOGRAM | SUMMARY) => {
                    data = Some((kind, reader.delimited()?));
                }
                other => reader.skip(other)?,
            }
        }
        let metric = Metric { name, names: self.points.names(name) };
        let Some((kind, data)) = data else { return Ok(()) };
        self.fields.plain = Default::default();
        self.fields.buckets.clear();
        each(data, DATA_POINTS, |point| {
            match kind {
                GAUGE | SUM => self.number(metric, point)?,
                HISTOGRAM => self.histogram(metric, point)?,
                _ => self.reject(metric, FaultCode::FieldValueType),
            }
            self.points.received += 1;
            Ok(())
        })
    }

    fn number(&mut self, metric: Metric<'a, 'c>, bytes: &'a [u8]) -> ProtobufResult<()> {
        self.key.truncate(self.key_start);
        let (mut time, mut value, mut flags) = (0, f64::NAN, 0);
        let mut reader = MessageReader::new(bytes);
        while !reader.is_empty() {
            let before = reader.rest;
            match reader.tag()? {
                NUMBER_ATTRIBUTES => {
                    reader.delimited()?;
                    self.add_attribute(before, reader.rest.len());
                }
                TIME => time = reader.word()?,
                AS_DOUBLE => value = reader.double()?,
                AS_INT => value = nearest(reader.word()?.cast_signed()),
                NUMBER_FLAGS => flags = reader.varint()?,
                other => reader.skip(other)?,
            }
        }
        if flags & NO_RECORDED_VALUE == 0 {
            self.store(metric, time, &[(0, value)], &[])?;
        }
        Ok(())
    }

    fn histogram(&mut self, metric: Metric<'a, 'c>, bytes: &'a [u8]) -> ProtobufResult<()> {
        self.key.truncate(self.key_start);
        // An encoder leaves out a number that is 0, unless the definition calls it optional.
        let (mut time, mut flags, mut count) = (0, 0, 0);
        let (mut counts, mut bounds) = (Vec::new(), Vec::new());
        let mut parts: Vec<PointPart> = Vec::new();
        let mut reader = MessageReader::new(bytes);
        while !reader.is_empty() {
            let before = reader.rest;
            match reader.tag()? {
                HISTOGRAM_ATTRIBUTES => {
                    reader.delimited()?;
                    self.add_attribute(before, reader.rest.len());
                }
                TIME => time = reader.word()?,
                COUNT => count = reader.word()?,
                SUM_OF => parts.push((END_SUM, reader.double()?)),
                MIN => parts.push((END_MIN, reader.double()?)),
                MAX => parts.push((END_MAX, reader.double()?)),
                BUCKET_COUNTS => words(reader.delimited()?, &mut counts)?,
                BUCKET_COUNT => counts.push(reader.word()?),
                BOUNDS => words(reader.delimited()?, &mut bounds)?,
                BOUND => bounds.push(reader.word()?),
                HISTOGRAM_FLAGS => flags = reader.varint()?,
                other => reader.skip(other)?,
            }
        }
        if flags & NO_RECORDED_VALUE != 0 {
            return Ok(());
        }
        parts.push((END_COUNT, nearest(count.cast_signed())));
        if parts.len() + bounds.len() > self.points.fields_max() {
            self.reject(metric, FaultCode::FieldsInvalid);
            return Ok(());
        }
        let buckets: Vec<_> = bounds.into_iter().zip(counts).collect();
        self.store(metric, time, &parts, &buckets)
    }

    /// Adds an attribute to the raw key: `start` without its last `rest_bytes` bytes.
    fn add_attribute(&mut self, start: &[u8], rest_bytes: usize) {
        let entry = start.get(..start.len() - rest_bytes).unwrap_or_default();
        self.key.extend_from_slice(entry);
    }

    /// Takes the parts of the point that was read, and the counts of its buckets by their bounds,
    /// or rejects the point.
    fn store(
        &mut self,
        metric: Metric<'a, 'c>,
        time: u64,
        parts: &[PointPart],
        buckets: &[(u64, u64)],
    ) -> ProtobufResult<()> {
        if !self.points.keeps() {
            return Ok(());
        }
        if self.is_refused {
            self.reject(metric, FaultCode::TagsInvalid);
            return Ok(());
        }
        let Self { points, key, key_start, resource, .. } = self;
        let own = key.get(*key_start..).unwrap_or_default();
        let Some(series) = points.series(metric.names, key, || read(resource, own))? else {
            self.reject(metric, FaultCode::TagsInvalid);
            return Ok(());
        };
        if metric.name.is_empty() {
            self.reject(metric, FaultCode::StringTooShort);
            return Ok(());
        }
        let time_ns = i64::try_from(time).unwrap_or(i64::MAX);
        let taken = self.take_all(metric, (series, time_ns), parts, buckets);
        if let Err(code) = taken {
            self.reject(metric, code);
        }
        Ok(())
    }

    fn take_all(
        &mut self,
        metric: Metric<'a, 'c>,
        (series, time_ns): (u32, i64),
        parts: &[PointPart],
        buckets: &[(u64, u64)],
    ) -> Result<(), FaultCode> {
        for &(end, value) in parts {
            let field = self.field(metric, end);
            self.points.take(series, time_ns, field, value)?;
        }
        let mut below: u64 = 0;
        for (at, &(bound, count)) in buckets.iter().enumerate() {
            if !self.points.keeps() {
                break;
            }
            below = below.saturating_add(count);
            let field = self.bucket(metric, at, bound);
            self.points.take(series, time_ns, field, nearest(below.cast_signed()))?;
        }
        Ok(())
    }

    /// Returns the field of a metric with an index in [`ENDS`].
    fn field(&mut self, metric: Metric<'a, 'c>, end: usize) -> u32 {
        if let Some(field) = self.fields.plain[end] {
            return field;
        }
        let name = match ENDS[end] {
            "" => Cow::Borrowed(metric.name),
            end => Cow::Owned([metric.name, end].concat()),
        };
        let field = self.points.field(metric.names, name);
        self.fields.plain[end] = Some(field);
        field
    }

    /// Returns the field of the bucket at this index, up to this bound.
    fn bucket(&mut self, metric: Metric<'a, 'c>, at: usize, bound: u64) -> u32 {
        if let Some(&(before, field)) = self.fields.buckets.get(at)
            && before == bound
        {
            return field;
        }
        let name = format!("{}_bucket_{}", metric.name, f64::from_bits(bound));
        let field = self.points.field(metric.names, name.into());
        self.fields.buckets.truncate(at);
        self.fields.buckets.push((bound, field));
        field
    }

    fn reject(&mut self, metric: Metric<'a, 'c>, code: FaultCode) {
        self.points.reject(Some((self.points.received + 1, code, metric.name)));
    }
}

/// Reads the words of a packed list.
fn words(bytes: &[u8], list: &mut Vec<u64>) -> ProtobufResult<()> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    list.extend(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)));
    if rest.is_empty() { Ok(()) } else { Err(MalformedMessage) }
}
