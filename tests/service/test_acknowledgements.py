"""Writes of one tenant that wait for its disk together, and hold no threads meanwhile."""

from __future__ import annotations

import errno
import json
import select
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.conformance.api import accounts_of, raw
from tests.waiting import until

from .service import running
from .test_shares import gauge

THREADS = 2
CLIENTS = 16
_NOBODY_SYNCS = """
import ctypes, mmap, sys
with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), 4096)
mutex = ctypes.byref(ctypes.c_char.from_buffer(page, 256))  # docs/format.md, "Shared state"
failures = ctypes.c_uint64.from_buffer(page, 72)
library = ctypes.CDLL(None)
print("ready", flush=True)
for order in sys.stdin:
    if order == "fail\\n":
        failures.value += 1
        print(0, flush=True)
    else:
        print(getattr(library, f"pthread_mutex_{order.strip()}")(mutex), flush=True)
"""


class Disk:
    """The turn at syncing a plane's log, which another process can keep to itself."""

    def __init__(self, folder):
        path = folder / "plane.log-lock"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NOBODY_SYNCS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def _order(self, order):
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    @contextmanager
    def stuck(self):
        assert self._order("lock") == 0
        try:
            yield
        finally:
            # A worker that was alone and opened the store anew has made the mutex anew.
            assert self._order("unlock") in {0, errno.EPERM}

    def fail(self):
        """Notes a sync that failed, as the process does that made it."""
        assert self._order("fail") == 0

    def close(self):
        self._process.communicate()


def write(key, entity):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = {"measurement": "link", "time": now, "tags": {"entity_id": entity}, "fields": {"a": 1}}
    body = json.dumps([record]).encode()
    head = (
        f"POST /telemetry HTTP/1.1\r\nHost: here\r\nX-Api-Key: {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def entities(account):
    return {entity["entity_id"] for entity in account.get("/topology").json["entities"]}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    data = tmp_path_factory.mktemp("acknowledgements") / "data"
    options = ("--admin", "127.0.0.1:0", "--workers", "1", "--threads", str(THREADS))
    with running(data, *options) as started:
        yield from accounts_of(started, data)


class Waiting:
    """Clients of one account, and a disk that their writes wait for."""

    def __init__(self, accounts, stack):
        self.service, self.account = accounts.service, accounts.tenant()
        self.clients = [stack.enter_context(raw(self.service)) for _ in range(CLIENTS)]
        assert self.write(self.clients[0], "first") == 202
        self.disk = Disk(self.account.plane)
        stack.callback(self.disk.close)

    def write(self, client, entity):
        return client.send(write(self.account.key, entity)).response().status

    def answers(self):
        return [client.response().status for client in self.clients]

    @contextmanager
    def all_under_way(self):
        """Names of entities of which each client is writing one, while the disk is stuck."""
        names = [str(number) for number in range(CLIENTS)]
        with self.disk.stuck():
            for client, name in zip(self.clients, names, strict=True):
                client.send(write(self.account.key, name))
            until(lambda: gauge(self.service, "fleetcast_http_requests_in_flight") == CLIENTS)
            yield names


def test_writes_wait_for_their_disk_together_and_hold_no_threads(accounts):
    """Far more are under way than a tenant has threads; nobody sees them, and others go on."""
    good = accounts.tenant()
    with ExitStack() as stack:
        waiting = Waiting(accounts, stack)
        with waiting.all_under_way() as names:
            assert good.post([]).status == 202
            assert not entities(waiting.account) & set(names)
            sockets = [client.sock for client in waiting.clients]
            assert select.select(sockets, [], [], 0)[0] == []
        assert waiting.answers() == [202] * CLIENTS
        assert entities(waiting.account) >= set(names)


def test_a_sync_that_fails_is_told_to_all_who_wait_for_it(accounts):
    """F9: none of them is answered 202; the store is opened anew for the next."""
    with ExitStack() as stack:
        waiting = Waiting(accounts, stack)
        with waiting.all_under_way():
            waiting.disk.fail()
        assert waiting.answers() == [503] * CLIENTS
        until(lambda: waiting.write(waiting.clients[0], "again") == 202)
