"""All settings as `sections.py` declares them, for texts that explain the settings."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetcast.config.sections import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field


class Declaration(NamedTuple):
    """One setting."""

    name: str
    """Section and name. Example: `limits.tags_max`."""
    field: Field[Any]
    """Default, and as metadata `checks`, `secret` and `cold`."""
    explanation: str
    """Docstring of the setting, in one line."""


def declarations() -> Iterator[Declaration]:
    """All settings, in the order of `sections.py`."""
    for section in fields(Settings):
        kind: Any = section.default_factory
        texts = _docstrings(kind)
        for item in fields(kind):
            yield Declaration(f"{section.name}.{item.name}", item, texts[item.name])


def _docstrings(kind: type) -> dict[str, str]:
    """The docstring below each field of a class. Python keeps these texts in the source only."""
    lines = ast.walk(ast.parse(inspect.getsource(kind)))
    (definition,) = (node for node in lines if isinstance(node, ast.ClassDef))
    found = {}
    for pair in pairwise(definition.body):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(ast.Constant(str(text))),
            ):
                found[name] = " ".join(text.split())
    return found
