//! Reads questions, and refuses all that is outside the language of this crate.

use promql_parser::label::{MatchOp, Matchers};
use promql_parser::parser::{Expr, MatrixSelector, VectorSelector, parse};
use promql_parser::util::visitor::{ExprVisitor, walk_expr};

use fleetcast_core::model::error::catching;

use crate::aggregation::Aggregator;
use crate::evaluator::calls::is_known;
use crate::expression::{ExpressionBytes, check_tokens, matched_bytes};
use crate::refusal::{EvaluationResult, QuestionError, bad_data};

/// Bytes of a question. Bounds the depth of expressions, which are read and evaluated by recursion.
pub(crate) const QUESTION_BYTES_MAX: usize = 1 << 14;

/// Reads a question.
///
/// # Errors
/// Returns the refusal of a text that is too long, malformed or outside the language.
pub(crate) fn read(question: &str) -> EvaluationResult<Expr> {
    if question.len() > QUESTION_BYTES_MAX {
        let message = format!("a query has at most {QUESTION_BYTES_MAX} bytes");
        return Err(invalid("query", &message));
    }
    // The parser panics for some durations that do not fit its type.
    let parsed = catching(|| Ok(check_tokens(question).and_then(|()| parse(question))));
    let parsed = parsed.unwrap_or_else(|error| Err(error.to_string()));
    let expression = parsed.map_err(|fault| invalid("query", &fault))?;
    walk_expr(&mut Checks { left: ExpressionBytes::new() }, &expression)?;
    Ok(expression)
}

/// Reads the selector of a `match[]` parameter.
///
/// # Errors
/// Returns the refusals of [`read`], and a refusal of other expressions.
pub(crate) fn read_selector(text: &str) -> EvaluationResult<VectorSelector> {
    match read(text)? {
        Expr::VectorSelector(selector) if selector.offset.is_none() && selector.at.is_none() => {
            Ok(selector)
        }
        _ => Err(invalid("match[]", "a series selector is expected")),
    }
}

/// Makes the refusal of a parameter.
pub(crate) fn invalid(parameter: &str, message: &str) -> QuestionError {
    bad_data(format!("invalid parameter {parameter:?}: {message}"))
}

/// Finds expressions outside the language, and regular expressions that take too much.
struct Checks {
    left: ExpressionBytes,
}

impl Checks {
    fn check_size(&mut self, matchers: &Matchers) -> EvaluationResult<()> {
        for matcher in &matchers.matchers {
            if let MatchOp::Re(expression) | MatchOp::NotRe(expression) = &matcher.op {
                let taken = self.left.take(matched_bytes(expression.as_str()));
                taken.map_err(|fault| invalid("query", &fault))?;
            }
        }
        Ok(())
    }
}

impl ExprVisitor for Checks {
    type Error = QuestionError;

    fn pre_visit(&mut self, expression: &Expr) -> EvaluationResult<bool> {
        let outside = match expression {
            Expr::Call(call) if !is_known(call.func.name) => call.func.name.to_owned(),
            Expr::Aggregate(aggregate) if Aggregator::read(&aggregate.op.to_string()).is_none() => {
                aggregate.op.to_string()
            }
            Expr::Binary(binary)
                if binary.modifier.as_ref().is_some_and(|modifier| {
                    let fill = &modifier.fill_values;
                    fill.lhs.is_some() || fill.rhs.is_some()
                }) =>
            {
                "fill".to_owned()
            }
            Expr::VectorSelector(VectorSelector { matchers, .. })
            | Expr::MatrixSelector(MatrixSelector {
                vs: VectorSelector { matchers, .. }, ..
            }) => {
                if matchers.or_matchers.is_empty() {
                    return self.check_size(matchers).map(|()| true);
                }
                "or between matchers".to_owned()
            }
            Expr::Extension(_) => "an extension".to_owned(),
            _ => return Ok(true),
        };
        Err(invalid("query", &format!("{outside} is not supported")))
    }
}
