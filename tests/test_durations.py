import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.durations import DURATION_SECONDS_MAX, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("5m", 300), ("24h", 86_400), ("90d", 7_776_000), ("2w", 1_209_600)],
)
def test_a_duration_is_a_whole_number_and_a_unit(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "d", "1.5h", "-1d", "5y", "5 d", "1d\n", "٣d", "99999w"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"duration|hundred years"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=DURATION_SECONDS_MAX))
def test_a_duration_reads_back_as_written(seconds):
    assert parse_duration(format_duration(seconds)) == seconds
