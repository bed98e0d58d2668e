//! Metrics of OpenTelemetry's protocol.
//!
//! Gauges and sums are a field of the metric's name. A histogram is `NAME_count`, `NAME_sum`,
//! `NAME_min`, `NAME_max`, and for each bound `NAME_bucket_BOUND`, the number of values not above
//! it. Exponential histograms and summaries are rejected. Points without a recorded value are passed
//! over.

use std::borrow::Cow;

use super::attributes::{begin_key, read};
use super::points::{Kind, Names, Points};
use crate::model::batch::ParseResult;
use crate::model::fault::{FaultCode, Refusal};
use crate::wire::ParseContext;
use crate::wire::mapping::Adapter;
use crate::wire::tokens::protobuf::{
    Malformed, Reader, Scan, delimited, fixed64, nearest, text, varint,
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

const NO_RECORDED_VALUE: u64 = 1;
const KIND: Kind =
    Kind { raw_key_format: b'o', entities: &["service.instance.id", "host.name", "service.name"] };

/// Reads an `ExportMetricsServiceRequest` into a batch.
///
/// # Errors
/// As [`crate::wire::parse_remote_write`]; a fault rejects its data point alone, with its number.
///
/// # Panics
/// As [`crate::wire::parse_json`].
pub fn parse_otlp(body: &[u8], adapter: Adapter<'_>, context: ParseContext<'_>) -> ParseResult {
    let points = Points::new(&KIND, adapter, context);
    let mut reading = Reading { points, key: Vec::new(), resource_bytes: 0 };
    let outcome = each(body, RESOURCE_METRICS, |bytes| reading.resource_metrics(bytes));
    if outcome.is_err() {
        return Err(Refusal::InvalidInput { field: "payload" });
    }
    reading.points.finish()
}

/// Hands each field `wanted` of a message on; others are passed over.
fn each<'a>(bytes: &'a [u8], wanted: u32, mut take: impl FnMut(&'a [u8]) -> Scan<()>) -> Scan<()> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            tag if tag == wanted => take(reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    Ok(())
}

/// State of a message that is being read.
struct Reading<'a, 'c> {
    points: Points<'a, 'c>,
    /// Raw key of the series of a point, which begins with its resource.
    key: Vec<u8>,
    resource_bytes: usize,
}

/// A metric that is being read.
#[derive(Clone, Copy)]
struct Metric<'a, 'c> {
    name: &'a str,
    names: Names<'c>,
}

/// A field of a point: text behind the name of the metric, and the value.
type Field = (Cow<'static, str>, f64);

impl<'a, 'c> Reading<'a, 'c> {
    fn resource_metrics(&mut self, bytes: &'a [u8]) -> Scan<()> {
        // A message that comes twice is one, and wherever it stands.
        let mut resource = Cow::Borrowed(&[][..]);
        each(bytes, RESOURCE, |part| {
            if resource.is_empty() {
                resource = Cow::Borrowed(part);
            } else {
                resource.to_mut().extend_from_slice(part);
            }
            Ok(())
        })?;
        begin_key(&mut self.key, &resource);
        self.resource_bytes = self.key.len();
        each(bytes, SCOPE_METRICS, |scope| each(scope, METRICS, |metric| self.metric(metric)))
    }

    fn metric(&mut self, bytes: &'a [u8]) -> Scan<()> {
        let (mut name, mut data) = ("", None);
        let mut reader = Reader::new(bytes);
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

    fn number(&mut self, metric: Metric<'a, 'c>, bytes: &'a [u8]) -> Scan<()> {
        self.key.truncate(self.resource_bytes);
        let (mut time, mut value, mut flags) = (0, f64::NAN, 0);
        let mut reader = Reader::new(bytes);
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
            self.store(metric, time, &[("".into(), value)])?;
        }
        Ok(())
    }

    fn histogram(&mut self, metric: Metric<'a, 'c>, bytes: &'a [u8]) -> Scan<()> {
        self.key.truncate(self.resource_bytes);
        let (mut time, mut flags) = (0, 0);
        let (mut counts, mut bounds) = (Vec::new(), Vec::new());
        let mut fields: Vec<Field> = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let before = reader.rest;
            match reader.tag()? {
                HISTOGRAM_ATTRIBUTES => {
                    reader.delimited()?;
                    self.add_attribute(before, reader.rest.len());
                }
                TIME => time = reader.word()?,
                COUNT => fields.push(("_count".into(), nearest(reader.word()?.cast_signed()))),
                SUM_OF => fields.push(("_sum".into(), reader.double()?)),
                MIN => fields.push(("_min".into(), reader.double()?)),
                MAX => fields.push(("_max".into(), reader.double()?)),
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
        if fields.len() + bounds.len() > self.points.fields_max() {
            self.reject(metric, FaultCode::FieldsInvalid);
            return Ok(());
        }
        let mut below: u64 = 0;
        for (bound, count) in bounds.into_iter().zip(counts) {
            below = below.saturating_add(count);
            let name = format!("_bucket_{}", f64::from_bits(bound));
            fields.push((name.into(), nearest(below.cast_signed())));
        }
        self.store(metric, time, &fields)
    }

    /// Adds an attribute to the raw key: `start` less its last bytes.
    fn add_attribute(&mut self, start: &[u8], rest_bytes: usize) {
        let entry = start.get(..start.len() - rest_bytes).unwrap_or_default();
        self.key.extend_from_slice(entry);
    }

    /// Takes the fields of the point that was read, or rejects it.
    fn store(&mut self, metric: Metric<'a, 'c>, time: u64, fields: &[Field]) -> Scan<()> {
        if !self.points.keeps() {
            return Ok(());
        }
        let Self { points, key, .. } = self;
        let Some(series) = points.series(metric.names, key, || read(key))? else {
            self.reject(metric, FaultCode::TagsInvalid);
            return Ok(());
        };
        if metric.name.is_empty() {
            self.reject(metric, FaultCode::StringTooShort);
            return Ok(());
        }
        let time_ns = i64::try_from(time).unwrap_or(i64::MAX);
        for (end, value) in fields {
            let name = match &**end {
                "" => Cow::Borrowed(metric.name),
                end => Cow::Owned([metric.name, end].concat()),
            };
            if let Err(code) = self.points.take((metric.names, series), time_ns, name, *value) {
                self.reject(metric, code);
                break;
            }
        }
        Ok(())
    }

    fn reject(&mut self, metric: Metric<'a, 'c>, code: FaultCode) {
        self.points.reject(Some((self.points.received + 1, code, metric.name)));
    }
}

/// Words of a packed list.
fn words(bytes: &[u8], list: &mut Vec<u64>) -> Scan<()> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    list.extend(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)));
    if rest.is_empty() { Ok(()) } else { Err(Malformed) }
}
