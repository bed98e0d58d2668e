//! Sizes of regular expressions.

use lrpar::{Lexeme, Lexer, NonStreamingLexer};
use promql_parser::parser::lexer;
use promql_parser::parser::token::{T_EQL_REGEX, T_NEQ_REGEX, T_STRING};
use promql_parser::util::unquote_string;
use regex_automata::nfa::thompson::NFA;

/// Bytes of all regular expressions in the selectors of a question.
const SELECTORS_BYTES_MAX: usize = 16 << 20;

/// Bytes of one compiled regular expression, as `regex` bounds them.
const COMPILED_BYTES_MAX: usize = 10 << 20;

/// Bytes of the place at which a group begins or ends. Each state has two of each group's places.
const PLACE_BYTES: usize = 16;

/// Bytes that the regular expressions of a question may still take.
pub(crate) struct ExpressionBytes(usize);

impl ExpressionBytes {
    pub(crate) const fn new() -> Self {
        Self(SELECTORS_BYTES_MAX)
    }

    /// # Errors
    /// Returns a sentence for people if the expressions take too many bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.0.checked_sub(bytes).ok_or_else(|| {
            format!("the regular expressions of a query take at most {SELECTORS_BYTES_MAX} bytes")
        });
        left.map(|left| self.0 = left)
    }
}

/// Checks the regular expressions in the selectors of a question, before `promql-parser` compiles and
/// keeps each of them.
///
/// # Errors
/// Returns a sentence for people if the expressions take too many bytes, or the text has no tokens.
pub(crate) fn check_tokens(question: &str) -> Result<(), String> {
    let tokens = lexer(question)?;
    let (mut left, mut is_expected) = (ExpressionBytes::new(), false);
    for token in tokens.iter().flatten() {
        match token.tok_id() {
            T_EQL_REGEX | T_NEQ_REGEX => is_expected = true,
            T_STRING if is_expected => {
                left.take(compiled_bytes(&unquote_string(tokens.span_str(token.span()))?))?;
                is_expected = false;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the bytes that a regular expression takes when it is compiled. An expression that is
/// malformed or too large counts as the largest: `promql-parser` compiles another reading of it.
/// Example: `(\w{99}){99}` is too large.
fn compiled_bytes(expression: &str) -> usize {
    compiled(expression).map_or(COMPILED_BYTES_MAX, |compiled| compiled.memory_usage())
}

/// Returns the bytes that a regular expression takes when it is compiled and matched. Groups may
/// take far more than the rest.
pub(crate) fn matched_bytes(expression: &str) -> usize {
    compiled(expression).map_or(COMPILED_BYTES_MAX, |compiled| {
        let places = compiled.states().len() * compiled.group_info().slot_len();
        compiled.memory_usage() + places * PLACE_BYTES
    })
}

fn compiled(expression: &str) -> Option<NFA> {
    let config = NFA::config().nfa_size_limit(Some(COMPILED_BYTES_MAX));
    NFA::compiler().configure(config).build(expression).ok()
}
