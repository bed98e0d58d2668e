//! `label_replace` and `label_join`.

use regex::Regex;

use fleetcast_core::model::limits::TAGS_BYTES_MAX;

use crate::budget::SampleBudget;
use crate::column::StepColumn;
use crate::expression::matched_bytes;
use crate::labels;
use crate::refusal::{EvaluationResult, execution};

/// Bytes of a label that a question makes, as many as the tags of a series have. Bounds the work of
/// an expression that is matched against it, which nothing interrupts.
const LABEL_BYTES_MAX: usize = TAGS_BYTES_MAX;

/// Sets the label `target` to `replacement`, if `expression` matches the label `source`.
pub(crate) fn label_replace(
    columns: &mut [StepColumn],
    [target, replacement, source, expression]: [&str; 4],
    budget: &SampleBudget,
) -> EvaluationResult<()> {
    let anchored = Regex::new(&format!("^(?:{expression})$"));
    let anchored = anchored.map_err(|_| {
        execution(format!("invalid regular expression in label_replace(): {expression}"))
    })?;
    check_target("label_replace", target)?;
    budget.take_bytes(matched_bytes(anchored.as_str()))?;
    let groups_max = replacement.matches('$').count();
    for StepColumn { labels, .. } in columns {
        let value = labels::value(labels, source).to_owned();
        if let Some(found) = anchored.captures(&value) {
            budget.take_bytes(target.len() + replacement.len() + groups_max * value.len())?;
            let mut text = String::new();
            found.expand(replacement, &mut text);
            check_length(text.len())?;
            labels::set(labels, target, &text);
        }
        budget.check_time()?;
    }
    Ok(())
}

/// Sets the label `target` to the values of the labels `sources`, with `separator` between them.
pub(crate) fn label_join(
    columns: &mut [StepColumn],
    target: &str,
    separator: &str,
    sources: &[&str],
    budget: &SampleBudget,
) -> EvaluationResult<()> {
    if let Some(source) = sources.iter().find(|source| !labels::is_name(source)) {
        return Err(execution(format!("invalid source label name in label_join(): {source}")));
    }
    check_target("label_join", target)?;
    for StepColumn { labels, .. } in columns {
        let values: Vec<&str> = sources.iter().map(|name| labels::value(labels, name)).collect();
        let bytes: usize = values.iter().map(|value| value.len() + separator.len()).sum();
        budget.take_bytes(target.len() + bytes)?;
        check_length(bytes)?;
        let text = values.join(separator);
        labels::set(labels, target, &text);
    }
    Ok(())
}

fn check_length(bytes: usize) -> EvaluationResult<()> {
    if bytes <= LABEL_BYTES_MAX {
        return Ok(());
    }
    Err(execution(format!("a label that a query makes has at most {LABEL_BYTES_MAX} bytes")))
}

fn check_target(function: &str, target: &str) -> EvaluationResult<()> {
    if labels::is_name(target) {
        return Ok(());
    }
    Err(execution(format!("invalid destination label name in {function}(): {target}")))
}
