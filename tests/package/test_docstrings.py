"""`help()` shows for every public name what an editor shows: the docstrings of the stub."""

from __future__ import annotations

import ast
import inspect
import itertools

import fleetcast
from tests.package.public import NAMES
from tests.tidy.files import ROOT

STUB = ROOT / "python" / "fleetcast" / "_core.pyi"
# Python shows the docs of their types: `tuple`, `str`, and of a `typing` alias.
VALUES = {"AGGREGATIONS", "INTERVALS", "MEASUREMENTS", "Record", "__version__"}


def of_the_stub() -> dict[str, str]:
    """Docstrings of classes, functions and members, by name."""
    found = {}
    for node in ast.parse(STUB.read_text()).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        found[node.name] = ast.get_docstring(node)
        members = node.body if isinstance(node, ast.ClassDef) else []
        for member, after in itertools.zip_longest(members, members[1:]):
            if isinstance(member, ast.FunctionDef):
                found[f"{node.name}.{member.name}"] = ast.get_docstring(member)
            match member, after:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    found[f"{node.name}.{name}"] = inspect.cleandoc(text)
    return {name: text for name, text in found.items() if text}


def shown(name: str) -> str | None:
    found = fleetcast
    for part in name.split("."):
        found = getattr(found, part)
    return inspect.getdoc(found)


def public() -> list[str]:
    return [name for name in NAMES if name not in VALUES]


def home(name: str) -> str | None:
    found = getattr(fleetcast, name.partition(".")[0])
    return found.__module__


def test_every_public_name_says_what_it_is():
    assert [name for name in public() if not shown(name)] == []


def test_the_compiled_names_say_what_the_stub_says():
    stub = of_the_stub()
    compiled = [name for name in public() if home(name) == "fleetcast._core"]
    assert len(compiled) > 60
    assert {name: shown(name) for name in compiled} == {name: stub.get(name) for name in compiled}
