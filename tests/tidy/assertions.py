"""Tests that assert nothing of their own."""

from __future__ import annotations

import ast

from tests.tidy.files import ROOT, short

_ASSERTING = {"raises", "warns", "fail"}


def without_assertion() -> list[str]:
    """`file::test` of each test that has no assertion, whatever its helpers assert."""
    tests = (
        (short(path), node)
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )
    return sorted(f"{file}::{node.name}" for file, node in tests if not _asserts(node))


def _asserts(test: ast.AST) -> bool:
    return any(map(_is_assertion, ast.walk(test)))


def _is_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(attr=name)):
            return name in _ASSERTING or name.startswith("assert_")
    return False
