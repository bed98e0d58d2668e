//! `count_values`: a series for each distinct value of a group.

use crate::budget::SampleBudget;
use crate::column::{ABSENT, SAME_LABELS, StepColumn, is_absent, joined};
use crate::functions::numbers::in_digits;
use crate::labels::{self, Choice};
use crate::refusal::{EvaluationResult, execution};

/// Counts equal values. The label `name` of a result is the value.
pub(super) fn count_values(
    columns: &[StepColumn],
    name: &str,
    choice: &Choice,
    steps: usize,
    budget: &SampleBudget,
) -> EvaluationResult<Vec<StepColumn>> {
    if !labels::is_name(name) {
        return Err(execution(format!("invalid label name {name:?}")));
    }
    let choice = match choice {
        Choice::Only(names) => Choice::Only(names.iter().cloned().chain([name.into()]).collect()),
        Choice::AllBut(names) => Choice::AllBut(names.clone()),
    };
    let mut counted: Vec<StepColumn> = Vec::new();
    let mut index_of = std::collections::HashMap::new();
    for step in 0..steps {
        budget.check_time()?;
        for column in columns.iter().filter(|column| !is_absent(column.values[step])) {
            let mut labels = column.labels.clone();
            labels::set(&mut labels, name, &in_digits(column.values[step]));
            let labels = choice.of(&labels);
            let at = *index_of.entry(labels.clone()).or_insert(counted.len());
            if at == counted.len() {
                budget.take_series(&labels, steps)?;
                counted.push(StepColumn { labels, values: vec![ABSENT; steps] });
            }
            let count = &mut counted[at].values[step];
            *count = if is_absent(*count) { 1.0 } else { *count + 1.0 };
        }
    }
    joined(counted, SAME_LABELS)
}
