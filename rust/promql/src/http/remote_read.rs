//! Remote read of Prometheus: a message of queries is answered by a message of samples, or by
//! frames of chunks.

use fleetcast_core::query::labelled::LabelMatcher;
use promql_parser::label::Matcher;
use promql_parser::parser::token::{T_EQL, T_EQL_REGEX, T_NEQ, T_NEQ_REGEX, TokenId};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, message};

use super::frames::put_frames;
use super::messages::{ReadCondition, ReadQuery, ReadRequest, SeriesMessage};
use crate::budget::SampleBudget;
use crate::expression::{ExpressionBytes, matched_bytes};
use crate::refusal::{EvaluationResult, bad_data, execution};
use crate::selector::matcher;
use crate::source::{SampledSeries, Source};

/// `ReadRequest.ResponseType`.
const SAMPLES: i32 = 0;
const STREAMED_XOR_CHUNKS: i32 = 1;

/// `ReadResponse.results` and `QueryResult.timeseries`.
const FIRST: u32 = 1;
/// Tests of conditions, in the order of `LabelMatcher.Type`.
const TESTS: [TokenId; 4] = [T_EQL, T_NEQ, T_EQL_REGEX, T_NEQ_REGEX];

/// The answer to a remote read.
pub(crate) enum ReadAnswer {
    /// A `ReadResponse` in snappy.
    Samples(Vec<u8>),
    /// Frames, which are not compressed.
    Frames(Vec<u8>),
}

/// Answers a `ReadRequest` in the first kind that it accepts and that there is; in samples if it
/// states no kind. Samples count, and so do the bytes of their messages.
///
/// # Errors
/// Returns the refusal of a message that is malformed, or of a read that passed a bound, and the
/// errors of [`Source::select`].
pub(crate) fn read(
    request: &[u8],
    source: &dyn Source,
    budget: &SampleBudget,
) -> EvaluationResult<ReadAnswer> {
    let malformed = |error| bad_data(format!("the body is not a message of remote read: {error}"));
    let request = ReadRequest::decode(request).map_err(malformed)?;
    let mut known =
        request.accepted.iter().filter(|kind| matches!(**kind, SAMPLES | STREAMED_XOR_CHUNKS));
    let is_streamed = match known.next() {
        Some(kind) => *kind == STREAMED_XOR_CHUNKS,
        None if request.accepted.is_empty() => false,
        None => return Err(bad_data("none of the accepted types of a response is known")),
    };
    let mut out = Vec::new();
    let mut expressions = ExpressionBytes::new();
    for (at, query) in (0..).zip(&request.queries) {
        let conditions = query.conditions.iter().map(|each| condition(each, &mut expressions));
        let conditions = conditions.collect::<EvaluationResult<Vec<LabelMatcher>>>()?;
        let found = found(query, &conditions, source, budget)?;
        if is_streamed {
            found.into_iter().try_for_each(|series| put_frames(series, at, budget, &mut out))?;
        } else {
            put_result(found, budget, &mut out)?;
        }
    }
    if is_streamed {
        return Ok(ReadAnswer::Frames(out));
    }
    let too_long = |_| execution("the answer is longer than snappy takes");
    snap::raw::Encoder::new().compress_vec(&out).map_err(too_long).map(ReadAnswer::Samples)
}

/// Returns the series of a query.
fn found(
    query: &ReadQuery,
    conditions: &[LabelMatcher],
    source: &dyn Source,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<SampledSeries>> {
    if query.end_ms < query.start_ms {
        return Err(bad_data("end timestamp must not be before start time"));
    }
    let found = source.select(conditions, query.start_ms, query.end_ms, budget.of_read())?;
    for SampledSeries { labels, values, .. } in &found {
        budget.take_series(labels, values.len())?;
    }
    Ok(found)
}

/// Appends the `QueryResult` of series.
fn put_result(
    found: Vec<SampledSeries>,
    budget: &SampleBudget,
    out: &mut Vec<u8>,
) -> EvaluationResult<()> {
    let mut result = Vec::new();
    for series in found {
        let series = SeriesMessage::from(series);
        budget.take_bytes(series.encoded_len())?;
        message::encode(FIRST, &series, &mut result);
    }
    encode_key(FIRST, WireType::LengthDelimited, out);
    encode_varint(result.len() as u64, out);
    out.extend_from_slice(&result);
    Ok(())
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
