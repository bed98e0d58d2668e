//! Reads the docstrings of a stub. The formatter keeps stubs in one form, so lines are enough.

use std::collections::HashMap;

const QUOTES: &str = "\"\"\"";
/// Columns before a member of a class.
const MEMBER_INDENT: usize = 4;

/// Returns the docstrings of classes, functions and their members, without their indentation. A
/// member is a method or a `Final` attribute.
pub(crate) fn docstrings(stub: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut class = None;
    let mut undocumented = None;
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(first) = text.strip_prefix(QUOTES) {
            let docstring = rest_of_docstring(first, indent, &mut lines);
            // Later texts below the same name document other attributes, which Python does not show.
            found.extend(undocumented.take().map(|name| (name, docstring)));
        } else if let Some((kind, name)) = header(text) {
            if indent == 0 && kind != "attribute" {
                class = (kind == "class").then_some(name);
                undocumented = Some(name.to_owned());
            } else if let (MEMBER_INDENT, Some(class)) = (indent, class) {
                undocumented = Some(format!("{class}.{name}"));
            }
        }
    }
    found
}

/// Returns the kind and the name of a line that begins a class, a function or a `Final` attribute.
fn header(text: &str) -> Option<(&str, &str)> {
    if let Some((name, _)) = text.split_once(": Final[") {
        return Some(("attribute", name));
    }
    let (kind, rest) = text.split_once(' ').filter(|(word, _)| matches!(*word, "class" | "def"))?;
    let end = rest.find(['(', ':']).unwrap_or(rest.len());
    Some((kind, &rest[..end]))
}

fn rest_of_docstring<'s>(
    first: &'s str,
    indent: usize,
    lines: &mut impl Iterator<Item = &'s str>,
) -> String {
    let mut docstring = String::new();
    let mut line = first;
    loop {
        if let Some(last) = line.strip_suffix(QUOTES) {
            docstring.push_str(last);
            return docstring.trim_end().to_owned();
        }
        docstring.push_str(line);
        docstring.push('\n');
        let Some(next) = lines.next() else { return docstring };
        line = next.get(indent..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docstrings_have_the_names_of_what_they_describe() {
        let stub = r#"
"""The module."""
WORDS: Final[tuple[str, ...]]
"""Not shown by Python."""

class Plane:
    """A store.

    Example:
        plane.scan(0, 1)
    """

    bound: str
    """Not shown either."""
    rows: Final[int]
    """Number of
    rows.
    """
    def scan(
        self, start: int
    ) -> str:
        """Rows.
        """
    def close(self) -> None: ...

def parse(text: str) -> int:
    """A time."""
"#;
        let expected = [
            ("Plane", "A store.\n\nExample:\n    plane.scan(0, 1)"),
            ("Plane.rows", "Number of\nrows."),
            ("Plane.scan", "Rows."),
            ("parse", "A time."),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(docstrings(stub), HashMap::from(expected));
    }
}
