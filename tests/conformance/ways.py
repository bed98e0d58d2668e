"""One program of requests and changes, run on a tenant of its own, and all that is seen of it.

The front answers requests of HTTP/1.1 alone; those of every other version go to the application. So
the version is what sets one way of serving a request apart from the other.
"""

from __future__ import annotations

import itertools
import re
import signal
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleetcast.engine import SecretText
from tests.service.service import ask as ask_admin
from tests.service.service import running
from tests.waiting import PATIENCE_SECONDS, until

from .api import accounts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from .api import Accounts

FRONT = "HTTP/1.1"
APPLICATION = "HTTP/1.2"
EXEMPT = 11
"""The client whose requests are not limited, and the first number of its address."""
ORIGIN = "https://console.example"
OPTIONS = (
    *("--workers", "1", "--admin", "127.0.0.1:0"),
    *("--set", "limits.requests_per_minute=6", "--set", "limits.lockout_failures=3"),
    *("--set", 'http.trusted_proxies=["127.0.0.1"]'),
    *("--set", f'limits.exempt=["{EXEMPT}.0.0.0/8"]'),
    *("--set", "adapters.address=127.0.0.1:0", "--set", "adapters.workers=1"),
    *("--set", "adapters.requests_per_minute=6"),
)
SETTINGS = {
    "usual": "",
    "small batches": "[limits]\nbatch_records_max = 2\n[adapters]\nrecords_max = 2\n",
    "small bodies": "[limits]\nbody_bytes_max = 1024\n[adapters]\nbody_bytes_max = 1024\n",
    "few fields": "[limits]\ntenant_fields_max = 4\n",
    "cors": f'[http]\ncors_origins = ["{ORIGIN}"]\n',
    "buffered": '[ingest]\nmode = "async"\n',
}
# Another value with each request, or the moment at which it is served.
_VARYING_FIELDS = {"date", "x-request-id", "retry-after"}
_VARYING_MEMBERS = ("write_id", "request_id", "timestamp", "duration_ms", "as_of_utc")
_USAGE = {"records_accepted_total", "records_rejected_total", "requests_total"}
_VARYING = re.compile(rf'("(?:{"|".join(_VARYING_MEMBERS)})":)("[^"]*"|[0-9.]+)')
_COUNTED = re.compile(
    r"fleetcast_(http|records|tenant_full|refused|commit|limiter)\w*(_total|_count|_in_flight)"
)


@dataclass(frozen=True)
class Ask:
    """One request. Its body is followed by nothing but the next request."""

    body: bytes = b""
    method: str = "POST"
    target: str = "/telemetry"
    key: str | None = "writer"
    client: int = EXEMPT
    fields: tuple[tuple[str, str], ...] = ()
    length: int | None = -1
    """Content-Length, -1 for that of the body and `None` for none."""
    version: str | None = None

    @property
    def is_chunked(self) -> bool:
        return any(name == "Transfer-Encoding" for name, _ in self.fields)


@dataclass(frozen=True)
class Send:
    """Requests in one go on the connection that is open, in pieces that end at `cuts`."""

    asks: tuple[Ask, ...]
    cuts: tuple[int, ...] = ()
    ends: bool = False
    """The client sends nothing more."""


@dataclass(frozen=True)
class Await:
    """A request whose body is sent when the server wants it."""

    ask: Ask


@dataclass(frozen=True)
class Change:
    """A change beside the service: `what` names a method of `Way`."""

    what: str
    value: str | None = None


Step = Send | Await | Change
CHANGES = (
    *(Change("revoke", "writer"), Change("renew", "writer"), Change("exclude")),
    *(Change("entitle"), Change("move_away"), Change("move_back")),
    *(Change("set", name) for name in SETTINGS if name != "buffered"),
)
"""Changes that random programs of every listener draw.

Under `buffered` a read sees a batch from its flush on, so its answer depends on the time.
"""


@dataclass
class Outcome:
    """All that a program leaves: answers, lines of the log, usage, counters and rows."""

    answers: list[object] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    answered_by_front: float = 0
    """Requests that the application never saw."""
    counters: dict[str, float] = field(default_factory=dict)
    rows: tuple[int, ...] = ()


def differences(one: Outcome, other: Outcome) -> list[str]:
    """Parts of two outcomes that are not the same."""
    pairs = [
        *zip_longest(one.answers, other.answers),
        *zip_longest(one.log, other.log),
        *zip_longest(sorted(one.counters.items()), sorted(other.counters.items())),
        (one.usage, other.usage),
        (one.rows, other.rows),
    ]
    return [f"{mine}\n{theirs}" for mine, theirs in pairs if mine != theirs]


@contextmanager
def both_ways(data: Path, listener: str) -> Iterator[Callable[[Sequence[Step]], list[Outcome]]]:
    """Starts a service; gives a function that runs a program on a listener of it both ways."""
    with running(data, *OPTIONS) as service, contextmanager(accounts_of)(service, data) as accounts:
        environment = (data / "fleetcast.toml").read_text()
        texts = {name: environment + text for name, text in SETTINGS.items()}
        numbers = itertools.count()

        def run(program: Sequence[Step]) -> list[Outcome]:
            versions = (FRONT, APPLICATION)
            ways = (Way(accounts, texts, each, next(numbers), listener) for each in versions)
            return [way.run(program) for way in ways]

        yield run


class Way:
    """Runs one program; `number` gives it clients and a tenant that nobody else has."""

    def __init__(
        self,
        accounts: Accounts,
        settings: dict[str, str],
        version: str,
        number: int,
        listener: str,
    ):
        self._accounts = accounts
        self._address = urlsplit(accounts.service.ready[listener])
        self._settings = settings
        self._version = version
        self._addresses = [f"{n}.{number >> 8}.{number & 255}.1" for n in range(EXEMPT + 1)]
        self._tenant = accounts.tenant(f"way-{number}")
        name = self._tenant.name
        self._keys = {
            "writer": self._tenant.key,
            "second": accounts.key(name, ("telemetry:write",)),
            "reader": accounts.key(name, ("topology:read",)),
            "elsewhere": accounts.key(name, environment="production"),
            "unknown": str(SecretText("key", "sandbox")),
            "mistyped": "ftk_sandbox_",
        }
        self._issued = list(self._keys.values())
        self._aside = self._tenant.plane.with_name(f"{self._tenant.plane.name}.aside")
        self._is_disabled = False
        self._socket: socket.socket | None = None
        self._log = accounts.data / "serve.log"
        self._log_bytes = self._log.stat().st_size

    def run(self, program: Sequence[Step]) -> Outcome:
        """Takes all steps, and puts back what they have changed beside the tenant."""
        outcome = Outcome()
        before = self._counters()
        for step in program:
            match step:
                case Send():
                    outcome.answers.append(list(self._send(step)))
                case Await():
                    outcome.answers.append(list(self._await(step.ask)))
                case Change():
                    getattr(self, step.what)(*([] if step.value is None else [step.value]))
        self._hang_up()
        self.move_back()
        self.enable()
        outcome.log = self._lines()
        outcome.rows = self._rows(before)  # when all is there
        outcome.usage = self._usage()
        self.set("usual")
        for name, value in self._counters().items():
            if value != before.get(name, 0):
                outcome.counters[self._masked(name)] = value - before.get(name, 0)
        answered = "fleetcast_http_answered_by_front_total"
        outcome.answered_by_front = outcome.counters.pop(answered, 0)
        self._accounts.forget(self._tenant)
        return outcome

    def revoke(self, key: str) -> None:
        self._accounts.revoke(self._keys[key])

    def renew(self, key: str) -> None:
        self._keys[key] = self._accounts.key(self._tenant.name, ("telemetry:write",))
        self._issued.append(self._keys[key])

    def disable(self) -> None:
        self._is_disabled = True
        self._accounts.tenants.change(self._tenant.name, disabled=True)

    def enable(self) -> None:
        if self._is_disabled:
            self._is_disabled = False
            self._accounts.tenants.change(self._tenant.name, disabled=False)

    def exclude(self) -> None:
        self._accounts.tenants.change(self._tenant.name, live_ingest=False)

    def entitle(self) -> None:
        self._accounts.tenants.change(self._tenant.name, live_ingest=True)

    def move_away(self) -> None:
        if not self._accounts.is_shared and not self._aside.exists():
            self._tenant.plane.rename(self._aside)

    def move_back(self) -> None:
        if self._aside.exists():
            self._aside.rename(self._tenant.plane)

    def set(self, name: str) -> None:
        """Puts settings in force for every request from now on."""
        file = self._accounts.data / "fleetcast.toml"
        if file.read_text() == self._settings[name]:
            return
        new = file.with_name("new.toml")
        new.write_text(self._settings[name])
        with self._log.open() as log:
            log.seek(0, 2)
            new.replace(file)
            self._accounts.service.process.send_signal(signal.SIGHUP)
            until(lambda: '"settings reloaded"' in log.read())

    def _send(self, step: Send) -> Iterator[object]:
        data = b"".join(self._request(ask) for ask in step.asks)
        wire = self._wire()
        with suppress(ConnectionError, BrokenPipeError):  # it has answered, and wants no more
            start = 0
            for cut in sorted(cut % (len(data) + 1) for cut in step.cuts):
                wire.sendall(data[start:cut])
                start = cut
            wire.sendall(data[start:])
            if step.ends:
                wire.shutdown(socket.SHUT_WR)
        for ask in step.asks:
            answer = self._final(ask)
            if answer is None:
                return
            yield answer
        if step.ends:
            self._hang_up()

    def _await(self, ask: Ask) -> Iterator[object]:
        expecting = replace(ask, fields=(*ask.fields, ("Expect", "100-continue")))
        data = self._request(expecting)
        head = len(data) - len(ask.body)
        wire = self._wire()
        wire.sendall(data[:head])
        answer = self._answer(ask)
        yield answer
        if answer is not None and answer[0] == 100:
            wire.sendall(data[head:])
            yield self._final(ask)

    def _request(self, ask: Ask) -> bytes:
        fields = [("Host", "a"), ("X-Forwarded-For", self._addresses[ask.client])]
        if ask.key is not None:
            fields.append(("X-Api-Key", self._keys[ask.key]))
        fields += ask.fields
        if ask.length is not None:
            fields.append(("Content-Length", str(len(ask.body) if ask.length < 0 else ask.length)))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        line = f"{ask.method} {ask.target} {ask.version or self._version}\r\n"
        return f"{line}{lines}\r\n".encode("latin-1") + ask.body

    def _wire(self) -> socket.socket:
        if self._socket is None:
            peer = self._address.hostname, self._address.port
            self._socket = socket.create_connection(peer, timeout=PATIENCE_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._input = self._socket.makefile("rb")
        return self._socket

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._input.close()
            self._socket.close()
            self._socket = None

    def _final(self, ask: Ask) -> tuple[int, object, object] | None:
        answer = self._answer(ask)
        # Sent only where the body was not there yet when the head was looked at.
        return self._final(ask) if answer is not None and answer[0] == 100 else answer

    def _answer(self, ask: Ask) -> tuple[int, object, object] | None:
        """Status, fields and content of the next answer; `None` at the end of the connection."""
        if self._socket is None:
            return None
        try:
            status = self._input.readline()
        except ConnectionResetError:
            status = b""
        if not status:
            self._hang_up()
            return None
        fields = []
        while line := self._input.readline().rstrip(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(": ")
            fields.append((name, value))
        code = int(status.split()[1])
        has_body = ask.method != "HEAD" and code >= 200
        length = int(dict(fields).get("Content-Length", 0)) if has_body else 0
        content = self._masked(self._input.read(length).decode(errors="replace"))
        varying = _VARYING_FIELDS
        is_refused_early = ask.is_chunked and code >= 400
        if is_refused_early:
            # The connection goes on only if the last chunk was there when the head was refused.
            varying = varying | {"connection"}
        known = [(name, "" if name.lower() in varying else value) for name, value in fields]
        if is_refused_early or ("Connection", "close") in fields:
            self._hang_up()
        return code, (status, known), content

    def _counters(self) -> dict[str, float]:
        text = ask_admin(self._accounts.service, "/metrics").body.decode()
        pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
        return {name: float(value) for name, value in pairs if _COUNTED.match(name)}

    def _usage(self) -> dict[str, int]:
        exempt = {"X-Forwarded-For": f"{EXEMPT}.0.0.2"}
        key = self._keys["second"]
        state = self._accounts.service.request("GET", "/account/state", headers=exempt, key=key)
        return {name: count for name, count in state.json["usage"].items() if name in _USAGE}

    def _lines(self) -> list[str]:
        lines = self._log.read_bytes()[self._log_bytes :].decode().splitlines()
        # Others are bounded by the second, so which of them are there depends on time.
        of_tenants = re.compile('"event":"request".*"error":null,"tenant":"')
        found = (line for line in lines if of_tenants.search(line))
        return [self._masked(line) for line in found]

    def _rows(self, before: dict[str, float]) -> tuple[int, ...]:
        engine, account = self._accounts.engine, self._tenant.plane.name
        counters = self._counters().items()
        counted = [
            sum(value - before.get(name, 0) for name, value in counters if name.startswith(family))
            for family in ("fleetcast_records_accepted_total", "fleetcast_records_rejected_total")
        ]

        def is_all_there() -> bool:
            plane.follow()
            return [plane.stats().rows, plane.stats().rejected] == counted

        plane = engine.plane(account, self._tenant.name)
        until(is_all_there)  # some may wait
        stats = plane.stats()
        seen = (stats.rows, stats.values, stats.rejected, stats.series, plane.answers_hash())
        engine.release(account)
        return seen

    def _masked(self, text: str) -> str:
        for number, key in enumerate(self._issued):
            known = SecretText.read("key", key)
            if known is not None:
                text = text.replace(known.id, f"key {number}")
        for number, address in enumerate(self._addresses):
            text = text.replace(f'"{address}"', f'"client {number}"')
        text = text.replace(self._tenant.name, "tenant").replace(self._tenant.plane.name, "account")
        return _VARYING.sub(r'\1""', text)
