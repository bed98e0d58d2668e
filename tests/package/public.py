"""Signatures of the package's names, as text, and what keeps the calls of yesterday working."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import fleetcast

FROZEN = (Path(__file__).parent / "public.txt").read_text().splitlines()
NAMES = [line.partition("(")[0] for line in FROZEN]

_LITERALS = (str, int, float, bool, type(None))


def describe(name: str) -> str:
    """A public name, or a member of a public class, with its parameters or its base class."""
    found = fleetcast
    for part in name.split("."):
        found = getattr(found, part)
    if inspect.isclass(found) and issubclass(found, Exception):
        return f"{name}({found.__mro__[1].__name__})"
    if not callable(found):
        return name
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return name  # a class that nobody makes
    plain = [_plain(each) for each in signature.parameters.values()]
    return f"{name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter without its type, which the stub has; a default that is no literal as `...`."""
    default = parameter.default
    if default is not parameter.empty and not isinstance(default, _LITERALS):
        default = ...
    return parameter.replace(annotation=parameter.empty, default=default)


def keeps(before: str, now: str) -> bool:
    """True where every call that `before` allowed is allowed `now`, and means the same."""
    if before == now:
        return True
    (name, _, old), (other, _, new) = before.partition("("), now.partition("(")
    if name != other or not (old and new):
        return False
    was, became = (ast.parse(f"def f({text}: ...").body[0].args for text in (old, new))
    positional, defaults = _positional(was), _positional(became)
    if [*defaults.items()][: len(positional)] != [*positional.items()]:
        return False
    added = [*defaults.values()][len(positional) :]
    by_name, more = _by_name(was), _by_name(became)
    added += [value for key, value in more.items() if key not in by_name]
    return by_name.items() <= more.items() and None not in added


def _positional(given: ast.arguments) -> dict[str, str | None]:
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    defaults = [None] * (len(names) - len(given.defaults)) + [*map(ast.unparse, given.defaults)]
    return dict(zip(names, defaults, strict=True))


def _by_name(given: ast.arguments) -> dict[str, str | None]:
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {each.arg: default and ast.unparse(default) for each, default in pairs}
