//! `series`, `labels`, `label/NAME/values` and `metadata`.

use std::collections::BTreeSet;

use fleetcast_core::model::json::write_string;
use fleetcast_core::query::labelled::{Labels, METRIC};

use super::json::{put_array, put_labels, put_texts};
use super::parameters::ApiParameters;
use crate::budget::SampleBudget;
use crate::labels;
use crate::language::{self, invalid};
use crate::refusal::{EvaluationResult, bad_data};
use crate::selector::matchers;
use crate::source::PlaneSource;

/// Answers `series`: the labels of all series that meet the conditions of a selector.
pub(super) fn series(
    given: &ApiParameters<'_>,
    source: &PlaneSource<'_>,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<u8>> {
    let found = matching(given, source, budget)?;
    let found = found.ok_or_else(|| bad_data("no match[] parameter provided"))?;
    let mut out = Vec::new();
    put_array(&mut out, &found, put_labels);
    Ok(out)
}

/// Answers `labels`: the names of labels.
pub(super) fn labels(
    given: &ApiParameters<'_>,
    source: &PlaneSource<'_>,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<u8>> {
    let names = match matching(given, source, budget)? {
        Some(found) => found.into_iter().flatten().map(|(label, _)| label.into_string()).collect(),
        None => source.texts(None)?,
    };
    array(names, budget)
}

/// Answers `label/NAME/values`: the values of a label.
pub(super) fn label_values(
    name: &str,
    given: &ApiParameters<'_>,
    source: &PlaneSource<'_>,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<u8>> {
    if !labels::is_name(name) {
        return Err(bad_data(format!("invalid label name: {name:?}")));
    }
    let values = match matching(given, source, budget)? {
        Some(found) => {
            let values = found.iter().map(|each| labels::value(each, name).to_owned());
            values.filter(|value| !value.is_empty()).collect()
        }
        None => source.texts(Some(name))?,
    };
    array(values, budget)
}

/// Answers `metadata`: each metric, of an unknown type.
pub(super) fn metadata(
    given: &ApiParameters<'_>,
    source: &PlaneSource<'_>,
) -> EvaluationResult<Vec<u8>> {
    let count_max = given.count("limit")?.unwrap_or(usize::MAX);
    let wanted = given.text("metric");
    let metrics = source.texts(Some(METRIC))?;
    let metrics =
        metrics.iter().filter(|name| wanted.as_ref().is_none_or(|wanted| wanted == *name));
    let mut out = vec![b'{'];
    for (at, name) in metrics.take(count_max).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.extend_from_slice(br#":[{"type":"unknown","help":"","unit":""}]"#);
    }
    out.push(b'}');
    Ok(out)
}

fn array(texts: BTreeSet<String>, budget: &SampleBudget) -> EvaluationResult<Vec<u8>> {
    budget.take_bytes(texts.iter().map(|text| size_of::<String>() + text.len()).sum())?;
    let mut out = Vec::new();
    put_texts(&mut out, texts);
    Ok(out)
}

/// Returns the labels of all series that meet the conditions of one of the selectors, or `None`
/// without selectors.
fn matching(
    given: &ApiParameters<'_>,
    source: &PlaneSource<'_>,
    budget: &SampleBudget,
) -> EvaluationResult<Option<BTreeSet<Labels>>> {
    let start_ms = given.time_ms("start")?.unwrap_or(i64::MIN / 1_000_000);
    let end_ms = given.time_ms("end")?.unwrap_or(i64::MAX / 1_000_000 - 1);
    if end_ms < start_ms {
        return Err(invalid("end", "end timestamp must not be before start time"));
    }
    let mut found: Option<BTreeSet<Labels>> = None;
    for text in given.all("match[]") {
        let selector = language::read_selector(&text)?;
        let found = found.get_or_insert_default();
        for labels in source.present(&matchers(&selector), start_ms, end_ms, budget.of_read())? {
            budget.take_series(&labels, 0)?;
            found.insert(labels);
        }
    }
    Ok(found)
}
