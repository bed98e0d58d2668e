//! The rules by clause.

mod adapted;
mod rules;

use super::{line_records, parse_adapted_lines, parse_lines};
use crate::model::batch::{Batch, ParseResult, Values};
use crate::model::fault::{BatchRefusal, LocationStep};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::SECOND_NS;
use crate::wire::ParseContext;
use crate::wire::precision::Precision;

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS + 123_456_789;
const LIMITS: WriteLimits = WriteLimits {
    batch_records_max: 5,
    tags_max: 3,
    fields_max: 4,
    tenant_fields_max: 100,
    tenant_series_max: 100,
    tenant_names_bytes_max: 1 << 20,
};

fn parse_in(precision: Precision, body: &[u8]) -> ParseResult {
    parse_lines(
        body,
        precision,
        ParseContext::new(&RawKeyCache::default(), &LIMITS, "acme", NOW_NS),
    )
}

fn parse(body: &str) -> ParseResult {
    parse_in(Precision::Nanoseconds, body.as_bytes())
}

fn accepted(body: &str) -> Batch {
    parse(body).unwrap_or_else(|refusal| panic!("{refusal:?}: {body}"))
}

/// Returns faults in words: code and location. Example: `int_parsing 3.time`.
fn faults_of(result: ParseResult) -> Vec<String> {
    let Err(BatchRefusal::Faults(faults)) = result else { panic!("{result:?}") };
    let words = faults.iter().map(|fault| {
        let steps = fault.loc.iter().map(|step| match step {
            LocationStep::Index(index) => index.to_string(),
            LocationStep::Key(key) => key.clone(),
        });
        format!("{} {}", fault.code.as_str(), steps.collect::<Vec<_>>().join("."))
    });
    words.collect()
}

fn faults(body: &str) -> Vec<String> {
    faults_of(parse(body))
}

/// Returns the values of the first table, each column in words.
fn columns(batch: &Batch) -> Vec<String> {
    let columns = batch.tables[0].columns.iter().map(|column| {
        let name = &batch.fields[column.field as usize].name;
        match &column.values {
            Values::Float(values) => format!("{name}={values:?}"),
            Values::Bool(values) => format!("{name}={values:?}"),
            Values::Text(values) => format!("{name}={values:?}"),
        }
    });
    columns.collect()
}

fn tags(batch: &Batch) -> Vec<(&str, &str)> {
    batch.new_series.get(0).unwrap().name.tags().collect()
}
