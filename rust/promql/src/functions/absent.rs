//! `absent` and `absent_over_time`: 1 at each step at which no series has a value.

use promql_parser::label::MatchOp;
use promql_parser::parser::{Expr, MatrixSelector, VectorSelector};

use fleetcast_core::query::labelled::{Labels, METRIC};

use crate::column::{ABSENT, StepColumn, is_absent};
use crate::labels;

/// Returns 1 at each step at which none of `columns` has a value. `expression` gives the labels.
pub(crate) fn absent(columns: &[StepColumn], steps: usize, expression: &Expr) -> Vec<StepColumn> {
    let mut values = vec![1.0; steps];
    for column in columns {
        for (absent, value) in values.iter_mut().zip(&column.values) {
            if !is_absent(*value) {
                *absent = ABSENT;
            }
        }
    }
    let column = StepColumn { labels: labels_of(expression), values };
    if column.is_empty() { Vec::new() } else { vec![column] }
}

/// Returns the labels that a selector asks to be equal to a text, each if it is asked for once.
fn labels_of(expression: &Expr) -> Labels {
    let (Expr::VectorSelector(selector)
    | Expr::MatrixSelector(MatrixSelector { vs: selector, .. })) = expression
    else {
        return Labels::new();
    };
    let VectorSelector { matchers, .. } = selector;
    let (mut found, mut seen) = (Labels::new(), Vec::new());
    for matcher in matchers.matchers.iter().filter(|matcher| matcher.name != METRIC) {
        let is_first = !seen.contains(&&matcher.name) && matcher.op == MatchOp::Equal;
        if is_first {
            seen.push(&matcher.name);
        }
        labels::set(&mut found, &matcher.name, if is_first { &matcher.value } else { "" });
    }
    found
}
