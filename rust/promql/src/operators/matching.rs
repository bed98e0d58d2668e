//! Arithmetic and comparisons between the series of two vectors that match.

use fleetcast_core::query::labelled::{Labels, METRIC};

use super::numbers::Operator;
use super::signatures::Signatures;
use crate::budget::SampleBudget;
use crate::column::{ABSENT, SAME_LABELS, StepColumn, is_absent, joined};
use crate::labels::{self, Choice};
use crate::refusal::{EvaluationResult, execution};

/// How many series of each side may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cardinality {
    OneToOne,
    ManyToOne,
    OneToMany,
}

/// The matching of an operator.
pub(crate) struct VectorMatch {
    pub(crate) operator: Operator,
    pub(crate) returns_bool: bool,
    pub(crate) cardinality: Cardinality,
    /// Labels by which series match.
    pub(crate) choice: Choice,
    /// Labels that a result takes from the side of which one series matches.
    pub(crate) included: Vec<String>,
}

impl VectorMatch {
    /// Evaluates the operator at each step.
    ///
    /// # Errors
    /// Returns a refusal if more series match than the cardinality allows.
    pub(crate) fn evaluated(
        &self,
        left: Vec<StepColumn>,
        right: Vec<StepColumn>,
        steps: usize,
        budget: &SampleBudget,
    ) -> EvaluationResult<Vec<StepColumn>> {
        let is_swapped = self.cardinality == Cardinality::OneToMany;
        let (many, one) = if is_swapped { (right, left) } else { (left, right) };
        let signatures = Signatures::new(&self.choice, &many, &one);
        let mut ones: Vec<Vec<usize>> = vec![Vec::new(); signatures.count];
        for (at, signature) in signatures.right.iter().enumerate() {
            ones[*signature].push(at);
        }
        budget.check_time()?;
        self.check_one(&one, &many, &signatures, &ones)?;
        let mut results: Vec<(usize, StepColumn)> = Vec::new();
        for (column, signature) in many.iter().zip(&signatures.left) {
            for at in &ones[*signature] {
                let single = &one[*at];
                let pairs = column.values.iter().zip(&single.values);
                let result = |(many, one): (&f64, &f64)| {
                    if is_absent(*many) || is_absent(*one) {
                        return ABSENT;
                    }
                    let (left, right) = if is_swapped { (*one, *many) } else { (*many, *one) };
                    self.operator.between(left, right, left, self.returns_bool)
                };
                let labels = self.result_labels(&column.labels, &single.labels);
                budget.take_series(&labels, steps)?;
                let values = pairs.map(result).collect();
                results.push((*signature, StepColumn { labels, values }));
            }
        }
        self.check_many(&results, signatures.count)?;
        joined(results.into_iter().map(|(_, column)| column).collect(), SAME_LABELS)
    }

    /// Checks that at each step at most one series of the `one` side has each signature. A step at
    /// which the other side is empty is not looked at.
    fn check_one(
        &self,
        one: &[StepColumn],
        many: &[StepColumn],
        signatures: &Signatures,
        ones: &[Vec<usize>],
    ) -> EvaluationResult<()> {
        if ones.iter().all(|members| members.len() < 2) {
            return Ok(());
        }
        let steps = one.first().map_or(0, |column| column.values.len());
        for step in 0..steps {
            if many.iter().all(|column| is_absent(column.values[step])) {
                continue;
            }
            let mut seen: Vec<Option<usize>> = vec![None; signatures.count];
            for (at, signature) in signatures.right.iter().enumerate() {
                if ones[*signature].len() < 2 || is_absent(one[at].values[step]) {
                    continue;
                }
                if let Some(other) = seen[*signature].replace(at) {
                    return Err(self.duplicates(&one[at].labels, &one[other].labels));
                }
            }
        }
        Ok(())
    }

    fn duplicates(&self, one: &Labels, other: &Labels) -> crate::refusal::QuestionError {
        let side = if self.cardinality == Cardinality::OneToMany { "left" } else { "right" };
        execution(format!(
            "found duplicate series for the match group {} on the {side} hand-side of the \
             operation: [{}, {}];many-to-many matching not allowed: matching labels must be unique \
             on one side",
            labels::written(&self.choice.of(one)),
            labels::written(one),
            labels::written(other),
        ))
    }

    /// Checks that at each step one result has each signature, or each signature and labels.
    fn check_many(&self, results: &[(usize, StepColumn)], count: usize) -> EvaluationResult<()> {
        let mut of_signature: Vec<Vec<&StepColumn>> = vec![Vec::new(); count];
        for (signature, column) in results {
            of_signature[*signature].push(column);
        }
        for mut columns in of_signature {
            if self.cardinality == Cardinality::OneToOne {
                if overlap(&columns) {
                    return Err(execution(
                        "multiple matches for labels: many-to-one matching must be explicit \
                         (group_left/group_right)",
                    ));
                }
                continue;
            }
            columns.sort_by(|one, other| one.labels.cmp(&other.labels));
            if columns.chunk_by(|one, other| one.labels == other.labels).any(overlap) {
                return Err(execution(
                    "multiple matches for labels: grouping labels must ensure unique matches",
                ));
            }
        }
        Ok(())
    }

    fn result_labels(&self, many: &Labels, one: &Labels) -> Labels {
        let mut result = many.clone();
        if self.operator.drops_metric() {
            labels::set(&mut result, METRIC, "");
        }
        if self.cardinality == Cardinality::OneToOne {
            match &self.choice {
                Choice::Only(_) => result = self.choice.of(&result),
                Choice::AllBut(names) => result.retain(|(label, _)| !names.contains(&**label)),
            }
        }
        for name in &self.included {
            labels::set(&mut result, name, labels::value(one, name));
        }
        if self.returns_bool {
            labels::set(&mut result, METRIC, "");
        }
        result
    }
}

/// Returns true if two of the columns have a value at the same step.
fn overlap(columns: &[&StepColumn]) -> bool {
    let [first, rest @ ..] = columns else { return false };
    if rest.is_empty() {
        return false;
    }
    let mut seen: Vec<bool> = first.values.iter().map(|value| !is_absent(*value)).collect();
    rest.iter().any(|column| {
        let mut values = seen.iter_mut().zip(&column.values);
        values.any(|(seen, value)| !is_absent(*value) && std::mem::replace(seen, true))
    })
}
