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

/// A text that values are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoughtText<'m> {
    pub(super) text: &'m str,
    /// If true, values that begin with the text are sought as well.
    pub(super) is_prefix: bool,
}

impl SoughtText<'_> {
    pub(super) fn is_in(self, value: &str) -> bool {
        if self.is_prefix { value.starts_with(self.text) } else { value == self.text }
    }
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

    /// Returns texts that lead to all values that meet the condition, or `None` if values without a
    /// common beginning meet it. No text is empty. Example: the values `a` and `b` for `^(?:a|b)$`,
    /// as tools ask for some of many, and all that begin with `x0` for `^(?:x0.*7)$`.
    pub(crate) fn sought(&self) -> Option<Vec<SoughtText<'_>>> {
        let values = match &self.test {
            LabelTest::Equal(text) => vec![text.as_str()],
            LabelTest::Matching(expression) => {
                let texts = expression.as_str().strip_prefix("^(?:")?.strip_suffix(")$")?;
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"|_-:/ ".contains(&byte);
                if !texts.bytes().all(is_plain) {
                    let text = self.expression_prefix();
                    return (!text.is_empty()).then(|| vec![SoughtText { text, is_prefix: true }]);
                }
                texts.split('|').collect()
            }
            LabelTest::NotEqual(_) | LabelTest::NotMatching(_) => return None,
        };
        let value = |text| SoughtText { text, is_prefix: false };
        let has_empty = values.iter().any(|value| value.is_empty());
        (!has_empty).then(|| values.into_iter().map(value).collect())
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
