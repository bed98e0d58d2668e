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

    /// Returns all values that meet the condition, or `None` if they are not known without a look at
    /// each value. No value is empty. Example: `a` and `b` for `^(?:a|b)$`, as tools ask for some of
    /// many.
    pub(crate) fn values(&self) -> Option<Vec<&str>> {
        let values = match &self.test {
            LabelTest::Equal(text) => vec![text.as_str()],
            LabelTest::Matching(expression) => {
                let texts = expression.as_str().strip_prefix("^(?:")?.strip_suffix(")$")?;
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"|_-:/ ".contains(&byte);
                texts.bytes().all(is_plain).then(|| texts.split('|').collect())?
            }
            LabelTest::NotEqual(_) | LabelTest::NotMatching(_) => return None,
        };
        values.iter().all(|value| !value.is_empty()).then_some(values)
    }

    /// Returns the text with which each value begins that the expression matches. It is empty for
    /// other tests. Example: `x0` for `^(?:x0.*7)$`.
    pub(super) fn expression_prefix(&self) -> &str {
        let (LabelTest::Matching(expression) | LabelTest::NotMatching(expression)) = &self.test
        else {
            return "";
        };
        let text = expression.as_str().strip_prefix("^(?:").unwrap_or_default();
        if text.contains('|') {
            return "";
        }
        let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric());
        let (plain, rest) = text.split_at(end.unwrap_or(text.len()));
        // The last character of `x0*` may be absent.
        let is_repeated = rest.starts_with(['*', '?', '+', '{']);
        &plain[..plain.len().saturating_sub(usize::from(is_repeated))]
    }

    pub(super) const fn is_expression(&self) -> bool {
        matches!(self.test, LabelTest::Matching(_) | LabelTest::NotMatching(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_that_match_begin_with_the_prefix() {
        for (expression, prefix) in [
            ("x0.*7", "x0"),
            ("x0", "x0"),
            ("x0*", "x"),
            ("x0?7", "x"),
            ("x0{0}7", "x"),
            ("x|y0", ""),
            ("x0(a|b)", ""),
            ("(?i)x0", ""),
            (".*", ""),
            ("", ""),
        ] {
            let expression = Regex::new(&format!("^(?:{expression})$")).unwrap();
            for test in
                [LabelTest::Matching(expression.clone()), LabelTest::NotMatching(expression)]
            {
                let matcher = LabelMatcher { label: "id".to_owned(), test };
                assert_eq!(matcher.expression_prefix(), prefix, "{matcher:?}");
            }
        }
    }
}
