"""The rules of docs/contract.md, and the code, tests and pages that cite them, hold together."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "contract.md"
CITING = {
    "rust": (".rs",),
    "python": (".py", ".pyi"),
    "tests": (".py",),
    "benches": (".py",),
    "docs": (".md",),
}
RULES_MIN = 257  # a rule may be added, and none vanishes unnoticed
CITATIONS_MIN = 900

# `H23`, not the hexadecimal of `%C3`, `\xD1` or a longer word, nor C/N0, which is a ratio, nor the
# `::F64` of an enum of types.
CODE = re.compile(r"(?<![\w%\\/])(?<!::)([A-O])(\d{1,2})(?!\w)")
STAGE = re.compile(r"\bstages? (\d+)(?: to (\d+))?", re.IGNORECASE)
SPAN = re.compile(r"\b([A-O])(\d{1,2}) to \1(\d{1,2})\b")
# The codes that a test's name begins with: `test_h23_n4_the_cut`, in Rust `h23_n4_the_cut`.
NAME = re.compile(r"\b(?:def test_|fn )((?:[a-o]\d{1,2}_)+)")
ROW = re.compile(r"^\| ([A-O]\d+|stage \d+) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`((?:tests|rust)/[\w/]+\.(?:py|rs))::(\w+)`")


def rules():
    """The cell that says which tests show a rule, by the rule's code."""
    return {code: shown for code, _, shown in ROW.findall(PAGE.read_text())}


def citations(text):
    """Every code that a text cites, as often as it does; ranges are written out."""
    found = [letter + number for letter, number in CODE.findall(text)]
    for letter, first, last in SPAN.findall(text):
        found += [f"{letter}{number}" for number in range(int(first), int(last) + 1)]
    for first, last in STAGE.findall(text):
        found += [f"stage {number}" for number in range(int(first), int(last or first) + 1)]
    for codes in NAME.findall(text):
        found += codes.upper().strip("_").split("_")
    return found


def citing():
    for folder, endings in CITING.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path not in (PAGE, Path(__file__)):
                yield path


def test_every_code_that_is_cited_is_a_rule():
    known = rules()
    assert len(known) >= RULES_MIN
    found = [
        (path.relative_to(ROOT), code) for path in citing() for code in citations(path.read_text())
    ]
    assert len(found) >= CITATIONS_MIN
    assert [(str(path), code) for path, code in found if code not in known] == []


def test_no_rule_is_there_twice():
    codes = [code for code, _, _ in ROW.findall(PAGE.read_text())]
    assert len(codes) == len(set(codes))
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (\w\d|stage \d)", line)]
    assert len(rows) == len(codes), "a row of another shape is none"


def test_each_rule_is_shown_by_tests_that_exist_and_cite_it():
    """At least one of the tests that a row names is in a file that cites the rule."""
    faults = []
    for code, shown in rules().items():
        named = TEST.findall(shown)
        texts = {file: (ROOT / file).read_text() for file, _ in named}
        for file, test in named:
            if not re.search(rf"^ *(?:def|fn) {test}\(", texts[file], re.MULTILINE):
                faults.append((code, f"{test} is not in {file}"))
        if named and not any(code in citations(text) for text in texts.values()):
            faults.append((code, "no test cites it"))
        if not named and not shown.startswith("not tested: "):
            faults.append((code, "no test, and no word on why"))
    assert faults == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as H23 has it (decisions C1, L3)", ["H23", "C1", "L3"]),
        (
            "E1 to E3 and stages 9 to 11",
            ["E1", "E3", "E1", "E2", "E3", "stage 9", "stage 10", "stage 11"],
        ),
        ("def test_h9_n4_both(): fn e6_first()", ["H9", "N4", "E6"]),
        ("%C3 \\xD1 C/N0 API1 A100 0xF8 L1d u8 H264 P1", []),
    ],
)
def test_what_a_citation_is(text, expected):
    assert citations(text) == expected
