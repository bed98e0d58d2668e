//! Remote write 1.0 of Prometheus.
//!
//! Values that are not a number and native histograms are left out without a fault. Prometheus
//! sends such values among other things to mark the end of a series. Exemplars and metadata are
//! skipped.

use std::borrow::Cow;
use std::ops::Range;

use super::points::{MetricProtocol, Points};
use crate::model::batch::ParseResult;
use crate::model::fault::{BatchRefusal, FaultCode};
use crate::wire::ParseContext;
use crate::wire::mapping::Adapter;
use crate::wire::rules::TagPairs;
use crate::wire::tokens::protobuf::{
    MessageReader, ProtobufResult, delimited, fixed64, text, varint,
};

/// `WriteRequest.timeseries`
const TIME_SERIES: u32 = delimited(1);
/// Fields of `TimeSeries`.
const LABELS: u32 = delimited(1);
const SAMPLES: u32 = delimited(2);
const HISTOGRAMS: u32 = delimited(4);
/// Fields of `Label`.
const NAME: u32 = delimited(1);
const VALUE: u32 = delimited(2);
/// Fields of `Sample`.
const SAMPLE_VALUE: u32 = fixed64(1);
const TIMESTAMP: u32 = varint(2);

/// The label that holds the name of the metric.
const METRIC: &str = "__name__";
const NS_PER_MS: i64 = 1_000_000;
const KIND: MetricProtocol =
    MetricProtocol { raw_key_format: b'r', entities: &["instance"], is_remote_write: true };

/// Reads a decompressed `WriteRequest` into a batch.
///
/// # Errors
/// Returns [`BatchRefusal::InvalidInput`] for `payload` if the bytes are not a message, then
/// [`BatchRefusal::TooManyRecords`]. A fault rejects only its sample, with the number of the
/// sample's series.
///
/// # Panics
/// Panics as [`crate::wire::parse_json`] does.
pub fn parse_remote_write(
    body: &[u8],
    adapter: Adapter<'_>,
    context: ParseContext<'_>,
) -> ParseResult {
    let points = Points::new(&KIND, adapter, context.of_shared_names(body));
    let mut reading = RemoteWriteParser { points, series_count: 0, samples: Vec::new() };
    if reading.request(body).is_err() {
        return Err(BatchRefusal::InvalidInput { field: "payload" });
    }
    reading.points.finish()
}

/// State of a message that is being read.
struct RemoteWriteParser<'a, 'c> {
    points: Points<'a, 'c>,
    series_count: usize,
    /// Values of the series that is being read, and their times in milliseconds. `None` for a
    /// histogram.
    samples: Vec<Option<(f64, i64)>>,
}

impl<'a> RemoteWriteParser<'a, '_> {
    fn request(&mut self, body: &'a [u8]) -> ProtobufResult<()> {
        let mut reader = MessageReader::new(body);
        while !reader.is_empty() {
            match reader.tag()? {
                TIME_SERIES => {
                    self.series_count += 1;
                    self.time_series(reader.delimited()?)?;
                }
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    fn time_series(&mut self, bytes: &'a [u8]) -> ProtobufResult<()> {
        let mut labels = SeriesLabels::new(bytes);
        self.samples.clear();
        let mut reader = MessageReader::new(bytes);
        while !reader.is_empty() {
            let start = bytes.len() - reader.rest.len();
            match reader.tag()? {
                LABELS => {
                    let entry = reader.delimited()?;
                    labels.add(entry, start..bytes.len() - reader.rest.len())?;
                }
                SAMPLES => self.samples.push(Some(sample(reader.delimited()?)?)),
                HISTOGRAMS => {
                    reader.delimited()?;
                    self.samples.push(None);
                }
                other => reader.skip(other)?,
            }
        }
        let SeriesLabels { metric, raw, .. } = labels;
        let names = self.points.names(metric.unwrap_or_default());
        let series = if self.points.keeps() && metric.is_some() && !self.samples.is_empty() {
            self.points.series(names, &raw, || read_labels(&raw))?
        } else {
            None
        };
        let field = metric.filter(|metric| series.is_some() && !metric.is_empty());
        let field = field.map(|metric| self.points.field(names, Cow::Borrowed(metric)));
        let fault = if metric.is_none() { FaultCode::Missing } else { FaultCode::TagsInvalid };
        for at in 0..self.samples.len() {
            let taken = match (self.samples.get(at), field, series) {
                _ if !self.points.keeps() => Ok(()),
                (Some(Some((value, time_ms))), Some(field), Some(series)) => {
                    let time_ns = time_ms.saturating_mul(NS_PER_MS);
                    self.points.take(series, time_ns, field, *value)
                }
                (Some(Some(_)), None, Some(_)) => Err(FaultCode::StringTooShort),
                (Some(Some(_)), ..) => Err(fault),
                _ => Err(FaultCode::FiniteNumber),
            };
            if let Err(code) = taken {
                let key = if code == FaultCode::TimeTooEarly { "timestamp" } else { METRIC };
                let is_silent = code == FaultCode::FiniteNumber;
                self.points.reject((!is_silent).then_some((self.series_count, code, key)));
            }
            self.points.received += 1;
        }
        Ok(())
    }
}

/// The labels of a series.
struct SeriesLabels<'a> {
    bytes: &'a [u8],
    metric: Option<&'a str>,
    /// Entries of all other labels.
    raw: Cow<'a, [u8]>,
    /// Range of `bytes` that equals `raw`, as long as `raw` is one range.
    range: Range<usize>,
}

impl<'a> SeriesLabels<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, metric: None, raw: Cow::Borrowed(&[]), range: 0..0 }
    }

    /// Adds the label `entry`, which is at `at` in the message.
    fn add(&mut self, entry: &'a [u8], at: Range<usize>) -> ProtobufResult<()> {
        if self.metric.is_none()
            && let (METRIC, value) = label(entry)?
        {
            self.metric = Some(value);
            return Ok(());
        }
        let bytes = self.bytes.get(at.clone()).unwrap_or_default();
        if self.raw.is_empty() {
            self.range = at;
            self.raw = Cow::Borrowed(bytes);
        } else if self.range.end == at.start && matches!(self.raw, Cow::Borrowed(_)) {
            self.range.end = at.end;
            self.raw = Cow::Borrowed(self.bytes.get(self.range.clone()).unwrap_or_default());
        } else {
            self.raw.to_mut().extend_from_slice(bytes);
        }
        Ok(())
    }
}

fn read_labels(raw: &[u8]) -> ProtobufResult<TagPairs<'_>> {
    let mut tags = Vec::new();
    let mut reader = MessageReader::new(raw);
    while !reader.is_empty() {
        reader.tag()?;
        let (name, value) = label(reader.delimited()?)?;
        tags.push((name.into(), value.into()));
    }
    Ok(tags)
}

fn label(bytes: &[u8]) -> ProtobufResult<(&str, &str)> {
    let (mut name, mut value) = ("", "");
    let mut reader = MessageReader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            NAME => name = text(reader.delimited()?)?,
            VALUE => value = text(reader.delimited()?)?,
            other => reader.skip(other)?,
        }
    }
    Ok((name, value))
}

fn sample(bytes: &[u8]) -> ProtobufResult<(f64, i64)> {
    let (mut value, mut time_ms) = (0.0, 0);
    let mut reader = MessageReader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            SAMPLE_VALUE => value = reader.double()?,
            TIMESTAMP => time_ms = reader.varint()?.cast_signed(),
            other => reader.skip(other)?,
        }
    }
    Ok((value, time_ms))
}
