"""How much is tried, and in which order two processes share the tests out.

Hypothesis: `dev` by default, `ci` where CI is set, `nightly` by HYPOTHESIS_PROFILE (`make long`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence

# Machines are shared and first calls slow: a deadline per example would measure them, not us.
settings.register_profile("dev", deadline=None, max_examples=60)
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
NIGHTLY_EXAMPLES = 5_000
settings.register_profile("nightly", deadline=None, max_examples=NIGHTLY_EXAMPLES)
default = "ci" if "CI" in os.environ else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", default))

# As many processes run as there are cores: threads of theirs would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

TESTS = Path(__file__).parent / "tests"
# Long ones go first, so that no process is still at it when the other has nothing left.
LONG_FIRST = (
    "predictions",
    "cli",
    "supervisor",
    "service",
    "grpc",
    "client",
    "composition",
    "conformance",
    "engine",
)
# Folders whose files share a service for the whole run: it is started once, not in each process.
SHARED = frozenset({"predictions", "conformance", "http"})
# Long ones in these that start their own.
ALONE = frozenset(
    f"tests/conformance/test_{name}.py" for name in ("both_ways", "adapters_both_ways")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds where services that tests start keep their stores."""
    parser.addoption("--backend", choices=["embedded", "postgresql"], default="embedded")


def pytest_configure(config: pytest.Config) -> None:
    """Hands it to all that starts services (`tests/service/service.py`)."""
    os.environ["TEST_BACKEND"] = config.getoption("backend")
    if config.getoption("backend") == "postgresql" and settings().max_examples < NIGHTLY_EXAMPLES:
        # A change of accounts is waited for until every node has heard of it: seconds an example.
        settings.register_profile("shared", settings(), max_examples=15)
        settings.load_profile("shared")
    config.addinivalue_line("markers", "files: moves or looks at the files of the embedded store")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders in the order in which they are handed out; within one it stays as it is."""
    if os.environ["TEST_BACKEND"] != "embedded":
        reason = "the store of this run has no files in the data directory"
        for item in items:
            if item.get_closest_marker("files"):
                item.add_marker(pytest.mark.skip(reason=reason))
    rank = {folder: at for at, folder in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: rank.get(_folder(item.path), len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """As `--dist loadfile`, but some folders go whole to one process."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests
    return _LoadFolder(config, log)


class _LoadFolder(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        folder = _folder(TESTS.parent / file)
        return folder if folder in SHARED and file not in ALONE else file


def _folder(path: Path) -> str:
    """The folder below `tests`, empty for a file that lies elsewhere."""
    parts: Sequence[str] = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return parts[0] if len(parts) > 1 else ""
