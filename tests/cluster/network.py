"""Machines with a network of their own, that can be cut between any two of them.

Each is a network namespace. A router between them forwards all packets, or, between two that are
cut off from each other, drops them without a word. Needs root; the network goes with it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from contextlib import ExitStack
from typing import Self

NET = "10.213.0"
ROUTER = "10.213.255.1"
HERE = "99"  # the machine that the tests run on
NO_NETWORK = "network namespaces are not to be made here: not root, or no ip(8)"


def ip(*arguments: str) -> None:
    """Runs ip(8)."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Network:
    """A router, and the machines around it by the last number of their addresses."""

    def __init__(self) -> None:
        self.prefix = f"fleet{os.getpid()}-"
        self._router = f"{self.prefix}router"
        self._machines: dict[str, str] = {}
        self._cuts: list[tuple[str, str]] = []
        self._left = ExitStack()

    @staticmethod
    def is_allowed() -> bool:
        """Makes a namespace, as an attempt."""
        name = f"fleet{os.getpid()}-attempt"
        try:
            ip("netns", "add", name)
        except (FileNotFoundError, subprocess.CalledProcessError):
            return False
        ip("netns", "del", name)
        return True

    def __enter__(self) -> Self:
        self._namespace(self._router)
        for name in ("ip_forward", "conf/all/rp_filter", "conf/default/rp_filter"):
            value = "1" if name == "ip_forward" else "0"
            self._in_router("sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{name}")
        self.add(HERE, "")
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def _namespace(self, name: str) -> None:
        ip("netns", "add", name)
        self._left.callback(ip, "netns", "del", name)
        ip("-n", name, "link", "set", "lo", "up")

    def _in_router(self, *command: str) -> None:
        ip("netns", "exec", self._router, *command)

    def add(self, number: str, name: str) -> list[str]:
        """A machine at `NET.number`; what a command begins with that is to run on it."""
        namespace = f"{self.prefix}{name}"
        place = ("-n", namespace) if name else ()
        if name:
            self._namespace(namespace)
        ends = [f"f{os.getpid() % 10**6}{side}{number}" for side in "mr"]
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        if name:
            ip("link", "set", ends[0], "netns", namespace)
        else:
            self._left.callback(ip, "link", "del", ends[0])
        ip("link", "set", ends[1], "netns", self._router)
        ip("-n", self._router, "addr", "add", f"{ROUTER}/32", "dev", ends[1])
        ip("-n", self._router, "link", "set", ends[1], "up")
        ip("-n", self._router, "route", "add", f"{NET}.{number}", "dev", ends[1])
        ip(*place, "addr", "add", f"{NET}.{number}/32", "dev", ends[0])
        ip(*place, "link", "set", ends[0], "up")
        onlink = ("via", ROUTER, "dev", ends[0], "onlink", "src", f"{NET}.{number}")
        ip(*place, "route", "add", f"{NET}.0/24", *onlink)
        self._machines[number] = namespace
        return ["ip", "netns", "exec", namespace] if name else []

    def cut(self, some: list[str], others: list[str]) -> None:
        """Drops all packets between some machines and others."""
        for one, other in itertools.product(some, others):
            for way in ((one, other), (other, one)):
                self._rule("add", way)
                self._cuts.append(way)

    def heal(self) -> None:
        """Forwards everything again."""
        while self._cuts:
            self._rule("del", self._cuts.pop())

    def _rule(self, change: str, way: tuple[str, str]) -> None:
        source, target = (f"{NET}.{number}" for number in way)
        ip("-n", self._router, "rule", change, "from", source, "to", target, "blackhole")
