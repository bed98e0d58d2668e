import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.engine import SecretText
from tests.key_text import secret_of

ENVIRONMENTS = ["production", "gov-development", "dedicated-x", "dedicated-a-b-c"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_key_reads_back_as_written(environment):
    key = SecretText("key", environment)
    assert str(key).startswith(f"ftk_{environment}_{key.id}_")
    read = SecretText.read("key", str(key))
    assert read is not None
    assert (str(read), read.id) == (str(key), key.id)
    assert read.proves(b"pepper", key.hash(b"pepper"))


def test_showing_a_text_does_not_show_the_secret():
    key = SecretText("key", "sandbox")
    assert secret_of(str(key)) not in repr(key)


@pytest.mark.parametrize("environment", ["", "san.box", "a" * 64, "a_b"])
def test_an_environment_that_no_key_can_have(environment):
    with pytest.raises(ValueError, match="environment"):
        SecretText("key", environment)


@given(st.text())
def test_other_text_is_no_key(text):
    for kind in ("key", "token", "session"):
        assert SecretText.read(kind, text) is None
