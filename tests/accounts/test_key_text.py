import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.accounts.key_text import new_key_text, read_key_text

ENVIRONMENTS = ["production", "gov-development", "dedicated-x", "dedicated-a-b-c"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_key_reads_back_as_written(environment):
    key = new_key_text(environment)
    assert str(key).startswith(f"ftk_{environment}_")
    assert read_key_text(str(key)) == key


def test_no_two_keys_share_an_id_or_a_secret():
    keys = [new_key_text("sandbox") for _ in range(100)]
    assert len({key.key_id for key in keys}) == len({key.secret for key in keys}) == 100


def test_showing_the_parts_does_not_show_the_secret():
    key = new_key_text("sandbox")
    assert key.secret not in repr(key)


def test_a_mistyped_character_is_noticed():
    text = str(new_key_text("sandbox"))
    for index in range(len(text)):
        other = "a" if text[index] != "a" else "b"
        assert read_key_text(text[:index] + other + text[index + 1 :]) is None


@given(st.text())
def test_other_text_is_no_key(text):
    assert read_key_text(text) is None


@pytest.mark.parametrize(
    "change", [str.upper, lambda text: text + "\n", lambda text: f"{text},{text}"]
)
def test_a_key_is_taken_to_the_letter(change):  # A23
    assert read_key_text(change(str(new_key_text("sandbox")))) is None
