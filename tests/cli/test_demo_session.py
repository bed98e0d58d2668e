"""Requests of the demo to a service, and its words for an answer that is no JSON."""

import io
from types import SimpleNamespace

import pytest

from fleetcast.cli.demo.tour import HttpSession
from fleetcast.errors import OperatorError


def test_an_answer_that_is_no_json_is_told_in_our_words():
    session = HttpSession("http://127.0.0.1:1", "key")
    session._connection = SimpleNamespace(
        request=lambda *_: None, getresponse=lambda: io.BytesIO(b"<html>")
    )
    with pytest.raises(OperatorError) as caught:
        session.get("/topology")
    assert str(caught.value) == "GET /topology did not answer in JSON"
