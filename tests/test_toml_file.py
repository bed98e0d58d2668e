"""Faults of TOML are told in our words, with line and column."""

import pytest

from fleetcast.config.toml_file import read_toml
from fleetcast.config.values import read_word
from fleetcast.errors import OperatorError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[http]\nworkers = ?\n", "line 2, column 11: is no TOML, or gives a name twice"),
        ("[http]\nworkers = 1\nworkers = 2", "its end: is no TOML, or gives a name twice"),
        (f"[http]\nworkers = {'9' * 5_000}\n", "a number has too many digits"),
        (f"[http]\nworkers = {'[' * 5_000}\n", "its lists or tables are nested too deeply"),
    ],
)
def test_a_fault_is_told_in_our_words(tmp_path, text, said):
    file = tmp_path / "f.toml"
    file.write_text(text)
    with pytest.raises(OperatorError) as caught:
        read_toml(file)
    assert str(caught.value) == f"{file}: {said}"


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 5_000])
def test_a_word_that_no_toml_can_hold_is_a_text(text):
    assert read_word(text) == text
