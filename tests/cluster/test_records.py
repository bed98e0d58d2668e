"""Records of an installation that many processes share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Cluster, Records
from fleetcast.errors import RecordsUnavailable

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
    own, other = (records_of(open_cluster()) for _ in range(2))
    with own.begin(write=True) as writing:
        writing.put("keys", b"a", b"1")
        writing.put("keys", b"b", b"2")
        assert [*writing.under("keys", b"", b"b")] == [(b"b", b"2")]
        assert all_of(other) == []
    assert all_of(other) == [(b"a", b"1"), (b"b", b"2")]
    with other.begin(write=False) as reading:
        assert reading.version > writing.version
        assert (reading.count("keys"), reading.get("keys", b"c")) == (2, None)
    with pytest.raises(RecordsUnavailable):
        reading.get("keys", b"a")


def test_a_block_that_raises_changes_nothing(open_cluster: Callable[[], Cluster]) -> None:
    records = records_of(open_cluster())

    def interrupted() -> None:
        with records.begin(write=True) as view:
            view.put("keys", b"a", b"1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all_of(records) == []


def test_a_child_must_make_its_own(open_cluster: Callable[[], Cluster]) -> None:
    cluster = open_cluster()
    assert all_of(records_of(cluster)) == []
    child = os.fork()
    if not child:
        try:
            all_of(records_of(cluster))
        except RecordsUnavailable as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all_of(records_of(cluster)) == []


def records_of(cluster: Cluster) -> Records:
    return Records.in_cluster(cluster, "control", ["keys"], bytes(32))


def all_of(records: Records) -> list[tuple[bytes, bytes]]:
    with records.begin(write=False) as view:
        return [*view.under("keys", b"")]
