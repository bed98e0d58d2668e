//! Conditions on the labels of series, as Prometheus has them.

use regex::Regex;

/// A condition on the value of one label. A series without the label has the empty value.
#[derive(Clone, Debug)]
pub struct LabelMatcher {
    /// Name of the label. `__name__` is the name of the metric.
    pub label: String,
    /// Test of the value.
    pub test: LabelTest,
}

/// A test of a label's value.
#[derive(Clone, Debug)]
pub enum LabelTest {
    /// `=`: the value is this text.
    Equal(String),
    /// `!=`: the value is another text.
    NotEqual(String),
    /// `=~`: the expression, which the caller anchors, matches the value.
    Matching(Regex),
    /// `!~`: the expression does not match the value.
    NotMatching(Regex),
}

impl LabelMatcher {
    /// Returns true if a label with this value meets the condition.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        match &self.test {
            LabelTest::Equal(text) => text == value,
            LabelTest::NotEqual(text) => text != value,
            LabelTest::Matching(expression) => expression.is_match(value),
            LabelTest::NotMatching(expression) => !expression.is_match(value),
        }
    }

    pub(super) const fn is_expression(&self) -> bool {
        matches!(self.test, LabelTest::Matching(_) | LabelTest::NotMatching(_))
    }
}
