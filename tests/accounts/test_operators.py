"""Operator tokens: their text, their ends, and what is kept of them."""

from __future__ import annotations

import pytest

from fleetcast.accounts import Operators
from fleetcast.accounts.operators import TOKEN_SECONDS
from fleetcast.accounts.store import OPERATOR_PEPPER
from fleetcast.engine import SecretText
from fleetcast.errors import OperatorError
from tests.key_text import secret_of, with_checksum


@pytest.fixture
def notes():
    return []


@pytest.fixture
def operators(store, clock, notes):
    return Operators(store, clock, lambda event, **of: notes.append((event, of)))


def test_a_token_is_good_until_its_end(operators, clock):
    issued = operators.create(name="Ada")
    assert operators.holder(str(issued.text)) == issued.record
    clock.now += TOKEN_SECONDS - 1
    assert operators.active(issued.record.token_id) == issued.record
    clock.now += 1
    assert operators.holder(str(issued.text)) is None
    assert operators.active(issued.record.token_id) is None
    assert issued.record.ended(int(clock.now)) == "expired"


def test_the_id_alone_and_another_secret_are_no_token(operators):
    issued = operators.create()
    other = with_checksum(f"fto_{issued.record.token_id}_{'a' * 32}")
    assert operators.holder(other) is None
    assert operators.holder(str(SecretText("token"))) is None


def test_a_revoked_token_stays_listed_and_is_good_no_more(operators, clock):
    first = operators.create(name="first")
    clock.now += 1
    second = operators.create(name="second")
    assert [token.name for token in operators.all()] == ["first", "second"]
    ended = operators.revoke(first.record.token_id)
    assert ended.ended(int(clock.now)) == "revoked"
    clock.now += 1
    assert operators.revoke(first.record.token_id).revoked_at == ended.revoked_at
    assert operators.holder(str(first.text)) is None
    assert operators.holder(str(second.text)) == second.record
    assert [token.revoked_at is None for token in operators.all()] == [False, True]


def test_another_secret_of_the_hashes_knows_no_token(store, operators):
    text = str(operators.create().text)
    store.keep_secret(OPERATOR_PEPPER, bytes(32))
    other = Operators(store)
    assert other.holder(text) is None


def test_changes_are_noted_without_the_secret(operators, notes):
    issued = operators.create(name="Ada")
    operators.revoke(issued.record.token_id)
    assert [event for event, _ in notes] == ["operator token created", "operator token revoked"]
    assert secret_of(str(issued.text)) not in str(notes)
    assert notes[0][1]["name"] == "Ada"


@pytest.mark.parametrize("given", [{"name": "x" * 101}, {"name": "a\nb"}, {"lifetime_seconds": 0}])
def test_a_token_that_makes_no_sense_is_refused(operators, given):
    with pytest.raises(OperatorError):
        operators.create(**given)
    assert operators.all() == []


def test_an_unknown_token_cannot_be_revoked(operators):
    for token_id in ("", "nobody", "ü"):
        with pytest.raises(OperatorError, match="there is no operator token"):
            operators.revoke(token_id)
