"""Circles in a graph of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of two or more nodes that reach each other, sorted."""
    reached = {node: _reached(edges, node) for node in edges}
    groups = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        for node in edges
        if node in reached[node]
    }
    return sorted(list(group) for group in groups if len(group) > 1)


def _reached(edges: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = list(edges[start])
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += edges.get(node, ())
    return found
