"""The files of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NOT_OURS = {".git", ".venv", ".venv-lock", "target", "fleetcast-data", "__pycache__"}


def files() -> Iterator[Path]:
    """Every file of the project, less what is built, cached or stored."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in NOT_OURS and not f.endswith("_cache")]
        yield from (Path(folder, name) for name in names)


def product(ending: str) -> list[Path]:
    """Sources of the service and the engine, without their tests, tools and benchmarks."""
    homes = {ROOT / "python", ROOT / "rust"}
    tests = {"tests", "benches", "examples"}
    return sorted(
        path
        for path in files()
        if path.suffix == ending
        and homes & set(path.parents)
        and path.stem != "tests"
        and not tests & set(path.relative_to(ROOT).parts)
    )


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
