//! Remote read of Prometheus: a message of queries is answered by a message of samples
//! (`prompb/remote.proto`). Of the two kinds of answers, this is `SAMPLES`.

use fleetcast_core::query::labelled::LabelMatcher;
use promql_parser::label::Matcher;
use promql_parser::parser::token::{T_EQL, T_EQL_REGEX, T_NEQ, T_NEQ_REGEX, TokenId};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, message};

use crate::budget::SampleBudget;
use crate::expression::{ExpressionBytes, matched_bytes};
use crate::refusal::{EvaluationResult, bad_data, execution};
use crate::selector::matcher;
use crate::source::{SampledSeries, Source};

/// `ReadResponse.results` and `QueryResult.timeseries`.
const FIRST: u32 = 1;
/// Tests of conditions, in the order of `LabelMatcher.Type`.
const TESTS: [TokenId; 4] = [T_EQL, T_NEQ, T_EQL_REGEX, T_NEQ_REGEX];

/// `prometheus.ReadRequest`. An answer may always be of the kind `SAMPLES`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) queries: Vec<ReadQuery>,
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

/// Answers a `ReadRequest` by a `ReadResponse` in snappy. Samples count, and so do the bytes of
/// their messages.
///
/// # Errors
/// Returns the refusal of a message that is malformed, or of a read that passed a bound, and the
/// errors of [`Source::select`].
pub(crate) fn read(
    request: &[u8],
    source: &dyn Source,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<u8>> {
    let malformed = |error| bad_data(format!("the body is not a message of remote read: {error}"));
    let request = ReadRequest::decode(request).map_err(malformed)?;
    let mut response = Vec::new();
    let mut expressions = ExpressionBytes::new();
    for query in &request.queries {
        let conditions = query.conditions.iter().map(|each| condition(each, &mut expressions));
        let conditions = conditions.collect::<EvaluationResult<Vec<LabelMatcher>>>()?;
        let result = result(query, &conditions, source, budget)?;
        encode_key(FIRST, WireType::LengthDelimited, &mut response);
        encode_varint(result.len() as u64, &mut response);
        response.extend_from_slice(&result);
    }
    let too_long = |_| execution("the answer is longer than snappy takes");
    snap::raw::Encoder::new().compress_vec(&response).map_err(too_long)
}

/// Returns the `QueryResult` of a query.
fn result(
    query: &ReadQuery,
    conditions: &[LabelMatcher],
    source: &dyn Source,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<u8>> {
    if query.end_ms < query.start_ms {
        return Err(bad_data("end timestamp must not be before start time"));
    }
    let found = source.select(conditions, query.start_ms, query.end_ms, budget.of_read())?;
    for SampledSeries { labels, values, .. } in &found {
        budget.take_series(labels, values.len())?;
    }
    let mut result = Vec::new();
    for series in found {
        let series = SeriesMessage::from(series);
        budget.take_bytes(series.encoded_len())?;
        message::encode(FIRST, &series, &mut result);
    }
    Ok(result)
}

fn condition(
    ReadCondition { test, label, value }: &ReadCondition,
    expressions: &mut ExpressionBytes,
) -> EvaluationResult<LabelMatcher> {
    let token = usize::try_from(*test).ok().and_then(|test| TESTS.get(test));
    let token = *token.ok_or_else(|| bad_data(format!("unknown type of a matcher: {test}")))?;
    if matches!(token, T_EQL_REGEX | T_NEQ_REGEX) {
        expressions.take(matched_bytes(value)).map_err(bad_data)?;
    }
    let read = Matcher::new_matcher(token, label.clone(), value.clone()).map_err(bad_data)?;
    Ok(matcher(&read))
}

impl From<SampledSeries> for SeriesMessage {
    fn from(series: SampledSeries) -> Self {
        let label = |(name, value): (Box<str>, Box<str>)| LabelMessage {
            name: name.into_string(),
            value: value.into_string(),
        };
        let samples = series.times_ms.into_iter().zip(series.values);
        Self {
            labels: series.labels.into_iter().map(label).collect(),
            samples: samples.map(|(time_ms, value)| SampleMessage { value, time_ms }).collect(),
        }
    }
}
