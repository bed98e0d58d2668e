"""The readers behind `test_tidy.py` find the faults that they are there for."""

import textwrap

import pytest

from tests.tidy import prose, rust, silenced
from tests.tidy.graph import circles
from tests.tidy.nouns import is_noun

SOURCES = {
    "lib.rs": """
        mod low;
        mod high;
        pub use self::high::High;
        #[cfg(test)]
        mod tests;
        """,
    "low.rs": """
        use crate::High; // a re-export
        pub(in crate::high) struct Low;
        """,
    "high.rs": """
        use super::low::{self, Low};
        pub struct High;
        fn text() -> &'static str { "crate::none { " }
        #[cfg(test)]
        mod tests { use crate::tests::Test; }
        """,
    "tests.rs": "use crate::{high, low};",
}


def test_a_module_that_uses_a_later_one_is_found(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    crate = rust.Crate(tmp_path)
    assert crate.edges() == {(): set(), ("low",): {("high",)}, ("high",): {("low",)}}
    assert rust.out_of_order(crate) == ["low uses high"]


def test_circles():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"e"}}
    assert circles(edges) == [["b", "c"]]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.py", '"""Of things."""\nx = 1  # Whether it is.\n', [1, 2]),
        ("a.py", '"""A thing.\n\n    What it is.\n"""\n', [3]),
        ("a.py", "# One thing.\n# What goes on is no opening.\n", []),
        ("a.rs", "/// Who waits.\nstruct A; // Where it is\n", [1, 2]),
        ("a.rs", "/// A thing,\n/// of which\n/// What follows.\n", []),
        ("a.md", "A line.\nWhat goes on.\n\n- Of these.\n\n| a | Who |\n", [4, 6]),
        ("a.md", "```\nWhat it prints\n```\n\nWhere is it? Here.\n", []),
    ],
)
def test_openings(tmp_path, name, text, lines):
    path = tmp_path / name
    path.write_text(text)
    assert sorted(line for line, _ in prose.clauses_of(path)) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a()  # noqa: S101\n", [1]),
        ("a()  # noqa: S101 - ours\n", []),
        ("a()  # noqa: S101, S603 - ours\nb()  # noqa: S603\nc()  # noqa: S607\n", [3]),
        ("a()  # type: ignore[misc]\nb()  # type: ignore[misc] # it has no types\n", [1]),
        ('"""As in `# noqa: S101`."""\n', []),
    ],
)
def test_a_silenced_checker_without_a_reason_is_found(tmp_path, text, lines):
    path = tmp_path / "a.py"
    path.write_text(text)
    assert [line for line, _ in silenced.without_reason_of(path)] == lines


def test_types_are_found_and_classes_of_python_are_not(tmp_path):
    path = tmp_path / "a.rs"
    path.write_text("""
pub(crate) struct Page;
type Pages = Vec<Page>; // struct Comment
#[derive(Debug)]
enum Step { Kind }
#[pyclass(frozen, name = "Plane")]
#[derive(Clone)]
pub(crate) struct Plane;
impl Iterator for Pages {
    type Item = Page;
}
#[cfg(test)]
mod tests { struct Test; }
""")
    assert rust.types_of(path) == {"Page", "Pages", "Step"}


@pytest.mark.parametrize("name", ["Held", "RowsKept", "Filling", "SealedTagged", "Lone", "Now"])
def test_a_participle_or_an_adverb_is_no_noun(name):
    assert not is_noun(name)


@pytest.mark.parametrize("name", ["HeldLock", "Ring", "BodyFraming", "Seed", "SHA256", "OpenPlane"])
def test_a_noun_may_have_a_participle_before_it(name):
    assert is_noun(name)
