"""Databases of servers that `make cluster` starts; without them these tests are skipped."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def database() -> str:
    """URL of the database of the run."""
    try:
        Cluster("postgresql://nobody@localhost/nothing")
    except ValueError as error:
        pytest.skip(f"{error}; `make cluster` builds one")
    if "DATABASE" not in os.environ:
        pytest.skip("no database was started; `make cluster` does")
    return os.environ["DATABASE"].partition("?")[0]


@pytest.fixture
def database_url(database: str) -> str:
    """URL of an empty schema of the test's own."""
    return f"{database}?options=-csearch_path%3Dt{secrets.token_hex(8)}"


@pytest.fixture
def open_cluster(database_url: str) -> Callable[[], Cluster]:
    """Makes handles of one installation, each as a process of its own has it."""
    Cluster(database_url).install("test", b"check")
    return lambda: Cluster(database_url)
