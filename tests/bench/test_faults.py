"""Faults of databases are told in our words, with the code that the database gave."""

import sqlite3
from http.client import RemoteDisconnected
from types import SimpleNamespace

import pytest

from fleetcast.bench.drivers.fleetcast_grpc import GrpcWriter
from fleetcast.bench.drivers.sqlite import Sqlite
from fleetcast.bench.faults import DatabaseFault, fault_of
from fleetcast.client.transport import Outcome, Verdict
from fleetcast.errors import OperatorError


class DatabaseError(Exception):
    """As pg8000 raises it."""


def raised(error, cause=None):
    error.__cause__ = cause
    return error


def of_sqlite():
    with pytest.raises(sqlite3.Error) as caught:
        sqlite3.connect(":memory:").execute("SELECT missing")
    return caught.value


REFUSED = {"S": "FATAL", "C": "28P01", "M": "password authentication failed"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DatabaseError(REFUSED), "it failed with SQLSTATE 28P01"),
        (of_sqlite(), "it failed with SQLITE_ERROR"),
        (
            raised(DatabaseError("no host"), ConnectionRefusedError(111, "Connection refused")),
            "its connection or a file failed: Connection refused",
        ),
        (RemoteDisconnected("Remote end closed connection"), "its connection ended"),
        (EOFError(), "its connection ended"),
        (DatabaseError("some words"), "its library tests failed"),
        (OperatorError("our words\nmore"), "our words"),
        (DatabaseFault("it answered 500"), "it answered 500"),
    ],
)
def test_a_fault_is_told_in_our_words(error, said):
    assert fault_of(error) == said


def test_a_fault_of_a_hosted_engine_is_told_in_our_words(tmp_path):
    database = Sqlite(tmp_path / "sqlite", {})
    database.start()
    try:
        with pytest.raises(DatabaseFault, match=r"^its library builtins failed$"):
            database.connect().call("write", {"nothing": []})
    finally:
        database.stop()


def test_words_of_grpc_are_left_out():
    outcome = Outcome(Verdict.AGAIN, "UNAVAILABLE", "failed to connect to all addresses")
    writer = GrpcWriter(SimpleNamespace(send=lambda _: outcome))
    with pytest.raises(DatabaseFault, match=r"^it answered UNAVAILABLE$"):
        writer.write(b"")
