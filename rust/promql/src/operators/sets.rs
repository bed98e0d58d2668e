//! `and`, `or` and `unless`.

use super::signatures::Signatures;
use crate::column::{ABSENT, SAME_LABELS, StepColumn, is_absent, joined};
use crate::labels::Choice;
use crate::refusal::EvaluationResult;

/// An operator of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperator {
    And,
    Or,
    Unless,
}

impl SetOperator {
    /// Returns the operator that a text writes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text {
            "and" => Some(Self::And),
            "or" => Some(Self::Or),
            "unless" => Some(Self::Unless),
            _ => None,
        }
    }

    /// Evaluates the operator at each step.
    ///
    /// # Errors
    /// Returns a refusal if labels occur twice at a step.
    pub(crate) fn evaluated(
        self,
        mut left: Vec<StepColumn>,
        mut right: Vec<StepColumn>,
        choice: &Choice,
        steps: usize,
    ) -> EvaluationResult<Vec<StepColumn>> {
        let signatures = Signatures::new(choice, &left, &right);
        match self {
            Self::And | Self::Unless => {
                let present = presence(&right, &signatures.right, signatures.count, steps);
                keep(&mut left, &signatures.left, |signature, step| {
                    present[signature][step] == (self == Self::And)
                });
            }
            Self::Or => {
                let present = presence(&left, &signatures.left, signatures.count, steps);
                keep(&mut right, &signatures.right, |signature, step| !present[signature][step]);
                left.append(&mut right);
            }
        }
        joined(left, SAME_LABELS)
    }
}

/// Returns for each signature and step if a series has a value.
fn presence(
    columns: &[StepColumn],
    signatures: &[usize],
    count: usize,
    steps: usize,
) -> Vec<Vec<bool>> {
    let mut present = vec![vec![false; steps]; count];
    for (column, signature) in columns.iter().zip(signatures) {
        for (present, value) in present[*signature].iter_mut().zip(&column.values) {
            *present |= !is_absent(*value);
        }
    }
    present
}

fn keep(columns: &mut [StepColumn], signatures: &[usize], is_kept: impl Fn(usize, usize) -> bool) {
    for (column, signature) in columns.iter_mut().zip(signatures) {
        column.map(|step, value| if is_kept(*signature, step) { value } else { ABSENT });
    }
}
