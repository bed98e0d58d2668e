"""Rust sources: who uses whom, functions, types. A reader of text, good enough for rustfmt's."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tests.tidy.files import ROOT, short

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Module = tuple[str, ...]

_BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]*?|[^\\'\n])'""",
    re.DOTALL,
)
_VISIBILITY = re.compile(r"\bpub\(in [^)]*\)")
_TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
_USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:$])(\w+)((?:::\w+)+)")
_MOD = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);", re.MULTILINE)
_FN = re.compile(r"\bfn\s+(\w+)")
# An indented `type` belongs to a trait or an implementation.
_TYPE = re.compile(
    r"\b(?:struct|enum|union|trait)\s+(\w+)|^(?:pub\S*\s+)?type\s+(\w+)", re.MULTILINE
)
_CLASS = re.compile(
    r"#\[(?:pyo3::)?pyclass\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\S*\s+)?(?:struct|enum)\s+(\w+)"
)
_DEFINED = re.compile(
    r"\b(?:struct|enum|union|trait|fn|const|static|type|macro_rules!)\s+(?:mut\s+)?(\w+)"
)


# Crates that are no part of the product.
TOOLS = {"faults", "fuzz"}


class Use(NamedTuple):
    """A path that a file names, from the top of its crate, and its name there."""

    path: Module
    name: str
    exported: bool


@cache
def code(path: Path) -> str:
    """A file's text, its tests, comments and strings blanked; lines stay where they are."""
    text = _BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), path.read_text())
    text = _VISIBILITY.sub("pub", text)
    while found := _TEST.search(text):
        end = item_end(text, found.end())
        blank = re.sub(r"[^\n]", " ", text[found.start() : end])
        text = text[: found.start()] + blank + text[end:]
    return text


def item_end(text: str, start: int) -> int:
    """The end of the item that starts there: behind its `;`, or behind its last brace."""
    depth = 0
    is_use = re.match(r"(?:pub(?:\([^)]*\))?\s+)?use\b", text[start:]) is not None
    for found in re.finditer(r"[{}()\[\];]", text[start:]):
        match found[0]:
            case "(" | "[" | "{":
                depth += 1
            case ")" | "]":
                depth -= 1
            case "}":
                depth -= 1
                if depth == 0 and not is_use:
                    return start + found.end()
            case ";" if depth == 0:
                return start + found.end()
    return len(text)


@cache
def _declared(path: Path) -> list[str]:
    """Names of the modules that a file declares, in its order."""
    return _MOD.findall(code(path))


class Crate:
    """The modules of one crate and what they use."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files: dict[Module, Path] = {self._module(p): p for p in source.rglob("*.rs")}
        live = self._live()
        self.files = {module: p for module, p in self.files.items() if module in live}
        self._uses = {module: list(self._read_uses(module)) for module in self.files}

    def _module(self, path: Path) -> Module:
        parts = path.relative_to(self.source).with_suffix("").parts
        return parts[:-1] if parts[-1] in ("mod", "lib") else parts

    def children(self, module: Module) -> list[str]:
        """Modules declared in a module's file, in its order, less those for tests."""
        return _declared(self.files[module])

    def _live(self) -> set[Module]:
        """Modules that are compiled when nothing is tested."""
        found: set[Module] = set()
        todo: list[Module] = [(), ("main",)]
        while todo:
            module = todo.pop()
            if module in self.files:
                found.add(module)
                todo += [(*module, child) for child in self.children(module)]
        return found

    def edges(self) -> dict[Module, set[Module]]:
        """The modules that each uses; a re-export alone is no use."""
        return {module: set(self._used(module)) - {module} for module in self.files}

    def _used(self, module: Module) -> Iterator[Module]:
        text = code(self.files[module])
        for use in self._uses[module]:
            unused = use.exported and len(re.findall(rf"\b{use.name}\b", text)) < 2
            if not unused:
                yield self.home(use.path)

    def _read_uses(self, module: Module) -> Iterator[Use]:
        text = code(self.files[module])
        for exported, tree in _USE.findall(text):
            for named in _expanded(tree):
                path, _, alias = named.partition(" as ")
                if found := self._absolute(module, path.split("::")):
                    yield Use(found, alias or found[-1], bool(exported))
        for first, rest in _PATH.findall(_USE.sub("", text)):
            if found := self._absolute(module, [first, *rest.split("::")[1:]]):
                yield Use(found, found[-1], exported=False)

    def _absolute(self, module: Module, path: list[str]) -> Module:
        """A path from the top of the crate; nothing for one that leads out of it."""
        first = path[0]
        if first == "crate":
            return tuple(path[1:])
        if first in ("self", "super"):
            while path and path[0] in ("self", "super"):
                module = module[:-1] if path[0] == "super" else module
                path = path[1:]
            return (*module, *path)
        return (*module, *path) if first in self.children(module) else ()

    def home(self, path: Module) -> Module:
        """The module that defines the item at a path, behind re-exports."""
        depth = 0
        while path[: depth + 1] in self.files and depth < len(path):
            depth += 1
        module, rest = path[:depth], path[depth:]
        if rest and not self._defines(module, rest[0]):
            for use in self._uses[module]:
                if use.exported and use.name == rest[0] and use.path != path:
                    return self.home(use.path)
                if use.exported and use.name == "*" and self._defines(use.path[:-1], rest[0]):
                    return use.path[:-1]
        return module

    def _defines(self, module: Module, name: str) -> bool:
        return module in self.files and name in _defined(self.files[module])


@cache
def _defined(path: Path) -> set[str]:
    return set(_DEFINED.findall(code(path)))


def _expanded(tree: str) -> Iterator[str]:
    """`a::{b, c::d}` as `a::b` and `a::c::d`; `a::{self}` as `a`."""
    tree = " ".join(tree.split())
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree.removesuffix("::self")
        return
    depth = start = 0
    for at, sign in enumerate(rest):
        if sign in ",}" and depth == 0:
            if part := rest[start:at].strip():
                yield from _expanded(head + part)
            start = at + 1
        depth += (sign == "{") - (sign == "}")


@cache
def crates() -> list[Crate]:
    sources = (ROOT / "rust").glob("*/src")
    return [Crate(source) for source in sorted(sources)]


def compiled() -> Iterator[Path]:
    """Files of the product that are compiled when nothing is tested."""
    for crate in crates():
        yield from crate.files.values()


def out_of_order(crate: Crate) -> list[str]:
    """Modules that use one which is listed after them, or after the one that they are in."""
    found = []
    for module, used in crate.edges().items():
        for other in used:
            common = 0
            while module[common : common + 1] == other[common : common + 1] != ():
                common += 1
            if common in (len(module), len(other)):
                continue
            order = crate.children(module[:common])
            if order.index(module[common]) < order.index(other[common]):
                found.append(f"{'::'.join(module)} uses {'::'.join(other)}")
    return sorted(found)


def use_edges(crate: Crate) -> dict[str, set[str]]:
    """Files of a crate, and those of them that each uses."""
    name = crate.files
    return {short(name[m]): {short(name[o]) for o in used} for m, used in crate.edges().items()}


def functions() -> Iterator[tuple[str, int]]:
    """Each function of the product, as `file::name`, and its lines."""
    for path in compiled():
        text = code(path)
        for found in _FN.finditer(text):
            lines = text.count("\n", found.start(), item_end(text, found.start())) + 1
            yield f"{short(path)}::{found[1]}", lines


def types() -> Iterator[tuple[str, str]]:
    """Name and file of each type of the product: struct, enum, trait or alias."""
    for path in compiled():
        if not TOOLS & set(path.relative_to(ROOT).parts):
            yield from ((name, short(path)) for name in types_of(path))


def types_of(path: Path) -> set[str]:
    """Names of the types of one file, less those that are classes of Python."""
    text = code(path)
    return {"".join(names) for names in _TYPE.findall(text)} - set(_CLASS.findall(text))
