"""Clients as child processes: client and service share no interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from benches.harness.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence


def module(name: str, *arguments: str) -> list[str]:
    """Command line of a module; it runs with `cwd=ROOT`, where Python finds it."""
    return [sys.executable, "-m", name, *arguments]


class Child:
    """A client that takes a line of JSON on stdin and answers with one (`driving.py`)."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline(), f"{' '.join(command[:4])} has failed"

    def tell(self, **wish: object) -> None:
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict:
        return json.loads(self._process.stdout.readline())

    def ask(self, **wish: object) -> dict:
        self.tell(**wish)
        return self.answer()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
