"""Python sources: who imports whom, functions, classes."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from tests.tidy.files import ROOT, product, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@cache
def imports(path: Path) -> list[str]:
    """Dotted names that a file imports; of `from a import b`, `a.b`."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return names


def import_edges(top: Path) -> dict[str, set[str]]:
    """Files below a folder, and those of them that each imports, also for types only."""
    modules = {_module(path, top): short(path) for path in top.rglob("*.py")}
    edges: dict[str, set[str]] = {}
    for name, file in modules.items():
        used = (_longest(imported, modules) for imported in imports(ROOT / file))
        edges[file] = {modules[found] for found in used if found and found != name}
    return edges


def _module(path: Path, top: Path) -> str:
    parts = path.relative_to(top.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _longest(imported: str, modules: Iterable[str]) -> str:
    """The longest module that a dotted name begins with, or nothing."""
    while imported and imported not in modules:
        imported = imported.rpartition(".")[0]
    return imported


def functions() -> Iterator[tuple[str, int]]:
    """Each function of the product, as `file::name`, and its lines."""
    for path in product(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{short(path)}::{node.name}", node.end_lineno - node.lineno + 1


def classes() -> Iterator[tuple[str, str]]:
    """Name and file of each class of the product."""
    for path in product(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name, short(path)
