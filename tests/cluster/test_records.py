"""Records of an installation that many processes share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Cluster, Records
from fleetcast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_build_without_the_backend_says_so() -> None:
    try:
        Cluster("postgresql://nobody@localhost/nothing")
    except ValueError as error:
        assert "no PostgreSQL backend" in str(error)  # noqa: PT017 - it may have one


def test_an_address_that_is_none_is_refused_without_its_password(database_url: str) -> None:
    del database_url  # only for a build with the backend
    with pytest.raises(ValueError, match=r"store\.database") as refused:
        Cluster("postgresql://fleet:secret@db/fleet?sslmode=prefer")
    assert "secret" not in str(refused.value)


def test_what_one_process_commits_the_next_read_of_another_sees(
    open_cluster: Callable[[], Cluster],
) -> None:
    own, other = (Records(open_cluster(), "control") for _ in range(2))
    assert other.newer(0) is None
    transaction = own.begin(write=True)
    transaction.put("keys", b"a", b"1")
    transaction.put("keys", b"b", b"2")
    assert transaction.under("keys", b"", first=b"b", limit=9) == [(b"b", b"2")]
    assert other.newer(0) is None
    transaction.commit()
    newer = other.newer(0)
    assert newer is not None
    version, records = newer
    assert records == [("keys", b"a", b"1"), ("keys", b"b", b"2")]
    reading = other.begin(write=False)
    assert (reading.version, reading.count("keys"), reading.get("keys", b"c")) == (version, 2, None)
    reading.roll_back()
    with pytest.raises(StoreError):
        reading.get("keys", b"a")


def test_a_transaction_that_is_rolled_back_changes_nothing(
    open_cluster: Callable[[], Cluster],
) -> None:
    records = Records(open_cluster(), "control")
    transaction = records.begin(write=True)
    transaction.put("keys", b"a", b"1")
    transaction.roll_back()
    assert records.newer(0) is None


def test_a_child_must_make_its_own(open_cluster: Callable[[], Cluster]) -> None:
    cluster = open_cluster()
    assert Records(cluster, "control").newer(0) is None
    child = os.fork()
    if not child:
        try:
            Records(cluster, "control").newer(0)
        except StoreError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Records(cluster, "control").newer(0) is None
