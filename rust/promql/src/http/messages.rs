//! Messages of remote read (`prompb/remote.proto` and `prompb/types.proto` of Prometheus).

use prost::Message;

use crate::source::SampledSeries;

/// `prometheus.ReadRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) queries: Vec<ReadQuery>,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) accepted: Vec<i32>,
}

/// `prometheus.Query`, without its hints.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadQuery {
    #[prost(int64, tag = "1")]
    pub(crate) start_ms: i64,
    #[prost(int64, tag = "2")]
    pub(crate) end_ms: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) conditions: Vec<ReadCondition>,
}

/// `prometheus.LabelMatcher`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadCondition {
    #[prost(int32, tag = "1")]
    pub(crate) test: i32,
    #[prost(string, tag = "2")]
    pub(crate) label: String,
    #[prost(string, tag = "3")]
    pub(crate) value: String,
}

/// `prometheus.TimeSeries`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SeriesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<LabelMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<SampleMessage>,
}

/// `prometheus.Label`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LabelMessage {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// `prometheus.Sample`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct SampleMessage {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) time_ms: i64,
}

/// `prometheus.ChunkedReadResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FrameMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) series: Vec<ChunkedSeries>,
    #[prost(int64, tag = "2")]
    pub(crate) query: i64,
}

/// `prometheus.ChunkedSeries`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkedSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<LabelMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) chunks: Vec<ChunkMessage>,
}

/// `prometheus.Chunk`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChunkMessage {
    #[prost(int64, tag = "1")]
    pub(crate) min_time_ms: i64,
    #[prost(int64, tag = "2")]
    pub(crate) max_time_ms: i64,
    #[prost(int32, tag = "3")]
    pub(crate) encoding: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) data: Vec<u8>,
}

impl From<(Box<str>, Box<str>)> for LabelMessage {
    fn from((name, value): (Box<str>, Box<str>)) -> Self {
        Self { name: name.into_string(), value: value.into_string() }
    }
}

impl From<SampledSeries> for SeriesMessage {
    fn from(series: SampledSeries) -> Self {
        let samples = series.times_ms.into_iter().zip(series.values);
        Self {
            labels: series.labels.into_iter().map(LabelMessage::from).collect(),
            samples: samples.map(|(time_ms, value)| SampleMessage { value, time_ms }).collect(),
        }
    }
}
