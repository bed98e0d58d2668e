"""An answer that is cut off is told in our words."""

import pytest

from tests.client.test_connections import ANSWER, peer


def test_an_answer_that_is_cut_off_is_told_in_our_words():
    with peer([ANSWER[:-1]]) as (_, client), pytest.raises(ConnectionError) as caught:
        client.account()
    assert str(caught.value).endswith(": the answer is cut off, or is not one of HTTP")
